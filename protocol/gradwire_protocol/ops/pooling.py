"""Pooling: maxima and means over windows, and over as many windows as a given output has elements."""

from __future__ import annotations

from math import prod
from typing import Final

from ..accepts import require
from ..autocast import CPU_FLOAT32
from ..costs import Cost, OpCall, numel
from ..dtypes import BOOLEAN, FLOATING, INTEGRAL, int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError, Unsupported
from ..meta import UNKNOWN, Inference, Meta, Shape, new, several
from ..shapes import channels_last_stride, common_device, rows_channels_last_stride, window_extent
from ..table import Out, Tensor, gradients, op
from .convolution import Size, spatial

Outputs = int | tuple[int | None, ...]


class Pool:
    """Kernel, stride, padding and dilation of a pooling, one int per spatial dimension, checked."""

    __slots__ = ("dilation", "kernel", "outputs", "padding", "stride")

    def __init__(
        self, name: str, count: int, shape: Shape, kernel: Size, stride: Size | None, padding: Size, dilation: Size,
        ceil_mode: bool,
    ) -> None:  # fmt: skip
        self.kernel = spatial(name, kernel, count, "kernel_size")
        self.stride = self.kernel if stride is None or stride == () else spatial(name, stride, count, "stride")
        self.padding = spatial(name, padding, count, "padding")
        self.dilation = spatial(name, dilation, count, "dilation")
        for what, given in (("kernel_size", self.kernel), ("stride", self.stride), ("dilation", self.dilation)):
            if min(given) <= 0:
                raise ArgumentError(f"{name}: {what} must be positive, got {list(given)}")
        for p, k, d in zip(self.padding, self.kernel, self.dilation, strict=True):
            if not 0 <= p <= (d * (k - 1) + 1) // 2:
                raise ArgumentError(
                    f"{name}: padding {list(self.padding)} must be from 0 to half of the kernel's reach "
                    f"(kernel_size {list(self.kernel)}, dilation {list(self.dilation)})"
                )
        if len(shape) not in (count + 1, count + 2):
            raise ShapeError(
                f"{name}: the input must have {count + 1} dimensions, or {count + 2} with a batch; its shape is "
                f"{list(shape)}"
            )
        if 0 in shape[1 if len(shape) == count + 2 else 0 :]:
            raise ShapeError(f"{name}: only the batch of an input may be empty; its shape is {list(shape)}")
        self.outputs = tuple(
            window_extent(n, k, s, p, d, ceil_mode)
            for n, k, s, p, d in zip(shape[-count:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        )
        if min(self.outputs) < 1:
            raise ShapeError(
                f"{name}: an input of shape {list(shape)} is too small for kernel_size {list(self.kernel)}: the result "
                f"would have extents {list(self.outputs)}"
            )

    def scratch(self, self_: Meta, by_planes: bool = False) -> int:
        """Bytes of a copy of an input with its padding, if there is any."""
        return _padded(self_, self_.shape, self.padding, self.stride, by_planes) if any(self.padding) else 0


def _padded(like: Meta, shape: Shape, padding: Shape, stride: Shape, by_planes: bool) -> int:
    """Bytes of an input with its padding; of one plane, where a CPU takes one after the other."""
    lead = len(shape) - len(padding)
    planes = max(prod(shape[:lead]), 0)
    planes = min(planes, 1) if by_planes and like.device == "cpu" else planes
    extents = (n + 2 * p + s for n, p, s in zip(shape[lead:], padding, stride, strict=True))
    return max(like.dtype.itemsize, 4) * planes * prod(extents)


class _Windows:
    """Checks that a gradient is that of a pooling: windows like these, in an input of these extents, give its shape."""

    def __init__(
        self, name: str, grad: Meta, extents: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape
    ) -> None:
        count = len(kernel)
        walks = (extents, kernel, stride, padding, dilation)
        if not 1 <= count <= 3 or any(len(walk) != count for walk in walks) or grad.ndim < count:
            raise ShapeError(
                f"{name}: extents {list(extents)}, kernel_size {list(kernel)}, stride {list(stride)}, padding "
                f"{list(padding)} and dilation {list(dilation)} do not match a gradient of shape {list(grad.shape)}"
            )
        require(name, grad.dtype, (FLOATING,))
        for what, given in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
            if min(given) <= 0:
                raise ArgumentError(f"{name}: {what} must be positive, got {list(given)}")
        for n, m, k, s, p, d in zip(extents, grad.shape[-count:], kernel, stride, padding, dilation, strict=True):
            if not 0 <= p <= (d * (k - 1) + 1) // 2:
                raise ArgumentError(
                    f"{name}: padding {list(padding)} must be from 0 to half of the kernel's reach "
                    f"(kernel_size {list(kernel)}, dilation {list(dilation)})"
                )
            found = {window_extent(n, k, s, p, d, ceil_mode) for ceil_mode in (False, True)}
            if UNKNOWN not in (n, m) and (m not in found or m < 1):
                raise ShapeError(
                    f"{name}: {m} windows of {k} elements, {s} apart, with padding {p} and dilation {d}, are not those "
                    f"of an input of {n}"
                )
        self.lead = grad.shape[:-count]
        self.padding, self.stride = padding, stride

    def scratch(self, grad: Meta, shape: Shape, by_planes: bool = False) -> int:
        """Bytes of what is worked on: inputs with their padding, and what lies between one dimension and the next."""
        return 2 * _padded(grad, shape, self.padding, self.stride, by_planes)


def _max(
    count: int, self: Meta, kernel: Size, stride: Size | None, padding: Size, dilation: Size, ceil_mode: bool
) -> Inference:
    name = f"max_pool{count}d"
    pool = Pool(name, count, self.shape, kernel, stride, padding, dilation, ceil_mode)
    if self.dtype.category == BOOLEAN or self.dtype.is_complex or (count == 1 and self.dtype.category == INTEGRAL):
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")
    shape = (*self.shape[:-count], *pool.outputs)
    node = "SqueezeBackward1" if count == 1 else f"MaxPool{count}DWithIndicesBackward0"
    found = new(
        shape, self.dtype, self.device, compute=self.dtype, stride=channels_last_stride(self, shape), grad_fn=node
    )
    found.scratch = pool.scratch(self, by_planes=True)
    return found


def _with_indices(values: Inference) -> Inference:
    """The values of a pooling, and where each was found in its flattened spatial dimensions, as int64."""
    out = values.outs[0]
    return several(values, new(out.shape, int64, out.device, stride=out.stride)).named(values.grad_fn or "")


def _pooled(dims: int) -> Cost:
    """The elements of each window, of which there are as many as elements of the result."""

    def steps(c: OpCall) -> int:
        size: Size = c.kernel_size
        window: int = size**dims if isinstance(size, int) else prod(size) ** (dims if len(size) == 1 else 1)
        return c.elements + c.made * window

    return Cost(steps)


@op(grad_fn="MaxPool2DWithIndicesBackward0", exposed=("function", "nn.functional"), cost=_pooled(1))
@gradients("max_pool_backward(grad)", saves="self")
def max_pool1d(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: bool = False,
) -> Inference:  # fmt: skip
    """The maximum of every window along the last dimension of ``(N, C, L)`` or ``(C, L)``. See :func:`max_pool2d`."""
    return _max(1, self, kernel_size, stride, padding, dilation, ceil_mode)


@op(grad_fn="MaxPool2DWithIndicesBackward0", exposed=("function", "nn.functional"), cost=_pooled(2))
@gradients("max_pool_backward(grad)", saves="self")
def max_pool2d(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: bool = False,
) -> Inference:  # fmt: skip
    """The maximum of every window of ``(N, C, H, W)`` or ``(C, H, W)``.

    ``stride`` is the kernel size unless given; ``padding`` (at most half of the kernel's reach) counts as minus
    infinity; ``ceil_mode`` also counts windows that reach beyond the end. The gradient goes to the first of equal
    maxima. NaN wins. Bools and complex numbers raise NotImplementedError.
    """
    return _max(2, self, kernel_size, stride, padding, dilation, ceil_mode)


@op(
    grad_fn="MaxPool3DWithIndicesBackward0", exposed=("function", "nn.functional"), cost=_pooled(3),
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients("max_pool_backward(grad)", saves="self")
def max_pool3d(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: bool = False,
) -> Inference:  # fmt: skip
    """The maximum of every window of ``(N, C, D, H, W)`` or ``(C, D, H, W)``. See :func:`max_pool2d`."""
    return _max(3, self, kernel_size, stride, padding, dilation, ceil_mode)


@op(results=2, grad_fn="MaxPool2DWithIndicesBackward0", exposed=("function",), cost=_pooled(1))
@gradients("reshape(scatter_add(c, reshape(grad)))", saves="self result1")
def max_pool1d_with_indices(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: bool = False,
) -> Inference:  # fmt: skip
    """:func:`max_pool1d`, and the index of each maximum along the last dimension."""
    found = _max(1, self, kernel_size, stride, padding, dilation, ceil_mode)
    (out,) = found.outs
    order = rows_channels_last_stride(self, out.shape)
    values = new(out.shape, out.dtype, out.device, compute=found.compute, stride=order, grad_fn=found.grad_fn)
    return _with_indices(values)


@op(results=2, grad_fn="MaxPool2DWithIndicesBackward0", exposed=("function",), cost=_pooled(2))
@gradients("reshape(scatter_add(c, reshape(grad)))", saves="self result1")
def max_pool2d_with_indices(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: bool = False,
) -> Inference:  # fmt: skip
    """:func:`max_pool2d`, and the index of each maximum in its flattened image."""
    return _with_indices(_max(2, self, kernel_size, stride, padding, dilation, ceil_mode))


@op(results=2, grad_fn="MaxPool3DWithIndicesBackward0", exposed=("function",), cost=_pooled(3))
@gradients("reshape(scatter_add(c, reshape(grad)))", saves="self result1")
def max_pool3d_with_indices(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: bool = False,
) -> Inference:  # fmt: skip
    """:func:`max_pool3d`, and the index of each maximum in its flattened volume."""
    return _with_indices(_max(3, self, kernel_size, stride, padding, dilation, ceil_mode))


_SPREAD: Final = Cost(lambda c: c.elements + numel(c.grad) * prod(c.kernel_size))
"""Each gradient meets the elements of its window."""


@op(grad_fn="MaxPoolBackwardBackward0", differentiable=("grad",), exposed=(), batched=True, cost=_SPREAD)
@gradients("max_pool_pick(grad0)", saves="self result")
def max_pool_backward(
    grad: Tensor, self: Tensor, result: Tensor, kernel_size: tuple[int, ...], stride: tuple[int, ...],
    padding: tuple[int, ...], dilation: tuple[int, ...],
) -> Inference:  # fmt: skip
    """Lay a gradient for the maxima, which are ``result``, where each was found in the input, at the first of equal
    ones; the transpose of :func:`max_pool_pick`."""
    name = "max_pool_backward"
    _need_outputs(name, grad, self, result, kernel_size)
    windows = _Windows(name, grad, self.shape[-len(kernel_size) :], kernel_size, stride, padding, dilation)
    for operand in (self, result):
        require(name, operand.dtype, (FLOATING,))
    found = new(self.shape, grad.dtype, common_device(grad, self, result), compute=grad.dtype)
    found.scratch = windows.scratch(grad, self.shape, by_planes=True)
    return found


@op(grad_fn="MaxPoolPickBackward0", differentiable=("tangent",), internal=True, batched=True)
@gradients("max_pool_backward(grad)", saves="self result")
def max_pool_pick(
    tangent: Tensor, self: Tensor, result: Tensor, kernel_size: tuple[int, ...], stride: tuple[int, ...],
    padding: tuple[int, ...], dilation: tuple[int, ...],
) -> Inference:  # fmt: skip
    """From a tensor like the input, the elements in the places where the input has its maxima."""
    if tangent.shape != self.shape:
        raise ShapeError(f"max_pool_pick: shapes {list(tangent.shape)} and {list(self.shape)} differ")
    _need_outputs("max_pool_pick", result, self, result, kernel_size)
    return new(result.shape, tangent.dtype, tangent.device, compute=tangent.dtype)


def _need_outputs(name: str, grad: Meta, self: Meta, result: Meta, kernel: Shape) -> None:
    lead = len(self.shape) - len(kernel)
    alike = len(result.shape) == len(self.shape) and self.shape[:lead] == result.shape[:lead]
    if grad.shape != result.shape or lead < 0 or not alike:
        raise ShapeError(f"{name}: shapes {list(grad.shape)}, {list(self.shape)} and {list(result.shape)} do not match")


def _format(count: int, self: Meta, shape: Shape) -> Shape | None:
    """The strides of means, and of maxima of windows that adapt: volumes keep no format."""
    if count == 1:
        return rows_channels_last_stride(self, shape)
    return channels_last_stride(self, shape) if count == 2 else None


def _mean(
    count: int, self: Meta, kernel: Size, stride: Size | None, padding: Size, ceil_mode: bool, divisor: int | None
) -> Inference:
    name = f"avg_pool{count}d"
    pool = Pool(name, count, self.shape, kernel, stride, padding, 1, ceil_mode)
    if divisor == 0:
        raise ArgumentError(f"{name}: divisor_override must not be 0")
    if self.dtype.category == BOOLEAN or self.dtype.is_complex:
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")
    shape = (*self.shape[:-count], *pool.outputs)
    last = _format(count, self, shape)
    node = "SqueezeBackward1" if count == 1 else f"AvgPool{count}DBackward0"
    found = new(shape, self.dtype, self.device, compute=self.dtype, stride=last, grad_fn=node)
    found.scratch = pool.scratch(self)
    return found


@op(grad_fn="AvgPool2DBackward0", exposed=("function", "nn.functional"), linear=True, cost=_pooled(1))
@gradients("avg_pool_backward(grad)")
def avg_pool1d(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
) -> Inference:  # fmt: skip
    """The mean of every window along the last dimension of ``(N, C, L)`` or ``(C, L)``. See :func:`avg_pool2d`."""
    return _mean(1, self, kernel_size, stride, padding, ceil_mode, None)


@op(grad_fn="AvgPool2DBackward0", exposed=("nn.functional",), linear=True, cost=_pooled(2), out=Out.EXACT)
@gradients("avg_pool_backward(grad)")
def avg_pool2d(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Inference:  # fmt: skip
    """The mean of every window of ``(N, C, H, W)`` or ``(C, H, W)``.

    A window's sum is divided by its number of elements, with the zeros of the padding unless
    ``count_include_pad`` is false, or by ``divisor_override``. Otherwise as :func:`max_pool2d`.
    """
    return _mean(2, self, kernel_size, stride, padding, ceil_mode, divisor_override)


@op(
    grad_fn="AvgPool3DBackward0", exposed=("nn.functional",), linear=True, cost=_pooled(3), out=Out.EXACT,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients("avg_pool_backward(grad)")
def avg_pool3d(
    self: Tensor, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Inference:  # fmt: skip
    """The mean of every window of ``(N, C, D, H, W)`` or ``(C, D, H, W)``. See :func:`avg_pool2d`."""
    return _mean(3, self, kernel_size, stride, padding, ceil_mode, divisor_override)


@op(grad_fn="AvgPoolBackwardBackward0", exposed=(), linear=True, cost=_SPREAD)
@gradients("avg_pool2d(grad0)")
def avg_pool_backward(
    grad: Tensor, extents: tuple[int, ...], kernel_size: tuple[int, ...], stride: tuple[int, ...],
    padding: tuple[int, ...], count_include_pad: bool = True, divisor_override: int | None = None,
) -> Inference:  # fmt: skip
    """Spread a gradient for the means over their windows, in an input with these spatial extents."""
    name = "avg_pool_backward"
    windows = _Windows(name, grad, extents, kernel_size, stride, padding, (1,) * len(kernel_size))
    if divisor_override == 0:
        raise ArgumentError(f"{name}: divisor_override must not be 0")
    shape = (*windows.lead, *extents)
    found = new(shape, grad.dtype, grad.device, compute=grad.dtype)
    found.scratch = windows.scratch(grad, shape)
    return found


# Adaptive pooling: output i of m, over n elements, covers floor(i * n / m) up to ceil((i + 1) * n / m).


def _adaptive(name: str, count: int, self: Meta, output_size: Outputs, per_channel: bool) -> Shape:
    if self.ndim not in (count + 1, count + 2):
        # PyTorch compares a tuple of sizes with the input's before it looks at anything else.
        compared = count > 1 and not isinstance(output_size, int) and self.ndim <= len(output_size)
        kind = ArgumentValueError if compared else ShapeError
        raise kind(
            f"{name}: the input must have {count + 1} dimensions, or {count + 2} with a batch; its shape is "
            f"{list(self.shape)}"
        )
    sizes = (output_size,) * count if isinstance(output_size, int) else tuple(output_size)
    if len(sizes) != count:
        raise ArgumentError(f"{name}: output_size is one number or {count}, got {list(sizes)}")
    outputs = tuple(n if m is None else m for m, n in zip(sizes, self.shape[-count:], strict=True))
    if min(outputs) < 0:
        raise ArgumentError(f"{name}: output_size must not be negative, got {list(outputs)}")
    if 0 in self.shape[1 if per_channel else -count :]:
        raise ShapeError(f"{name}: only the first dimension of an input may be empty; its shape is {list(self.shape)}")
    if not self.dtype.is_floating_point:
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")
    return (*self.shape[:-count], *outputs)


def _adaptive_mean(count: int, self: Meta, output_size: Outputs) -> Inference:
    shape = _adaptive(f"adaptive_avg_pool{count}d", count, self, output_size, False)
    last = _format(count, self, shape)
    whole = prod(shape[-count:]) == 1
    mean = "MeanBackward1" if last is None else "AsStridedBackward1"
    node = "SqueezeBackward1" if count == 1 else mean if whole else f"AdaptiveAvgPool{count}DBackward0"
    found = new(shape, self.dtype, self.device, compute=self.dtype, stride=last, grad_fn=node)
    found.scratch = 0 if whole else _averaging(self.shape[-count:], shape[-count:])
    return found


def _averaging(extents: Shape, outputs: Shape) -> int:
    """Bytes of the matrices that take the means of windows: one for each dimension, in double precision and cast."""
    return max((2 * 8 * n * m for n, m in zip(extents, outputs, strict=True)), default=0)


def _averages(c: OpCall, given: Meta) -> int:
    """Steps: a product with a matrix for each dimension that changes, one after the other."""
    shape, made, steps = list(given.shape), c.outs[0].shape, c.elements
    for i, (n, m) in enumerate(zip(given.shape, made, strict=True)):
        if n != m:
            steps += max(prod(shape), 0) * m
            shape[i] = m
    return steps


_AVERAGED: Final = Cost(lambda c: _averages(c, c.self))


@op(
    grad_fn="AdaptiveAvgPool2DBackward0", exposed=("function", "nn.functional"), linear=True, cost=_AVERAGED
)  # fmt: skip
@gradients("adaptive_avg_pool_backward(grad)")
def adaptive_avg_pool1d(self: Tensor, output_size: int | tuple[int | None, ...]) -> Inference:
    """Means over as many windows as ``output_size``, along the last dimension. See :func:`adaptive_avg_pool2d`."""
    return _adaptive_mean(1, self, output_size)


@op(grad_fn="AdaptiveAvgPool2DBackward0", exposed=("nn.functional",), linear=True, cost=_AVERAGED)
@gradients("adaptive_avg_pool_backward(grad)")
def adaptive_avg_pool2d(self: Tensor, output_size: int | tuple[int | None, ...]) -> Inference:
    """Means over windows that divide ``(N, C, H, W)`` or ``(C, H, W)`` as evenly as they can into ``output_size``
    (``None`` keeps an extent); windows overlap where the extents do not divide. Floating point only."""
    return _adaptive_mean(2, self, output_size)


@op(
    grad_fn="AdaptiveAvgPool3DBackward0", exposed=("nn.functional",), linear=True, autocast=CPU_FLOAT32, cost=_AVERAGED
)  # fmt: skip
@gradients("adaptive_avg_pool_backward(grad)")
def adaptive_avg_pool3d(self: Tensor, output_size: int | tuple[int | None, ...]) -> Inference:
    """Means over windows that divide volumes into ``output_size``. See :func:`adaptive_avg_pool2d`."""
    return _adaptive_mean(3, self, output_size)


@op(grad_fn="AdaptiveAvgPoolBackwardBackward0", exposed=(), linear=True, cost=Cost(lambda c: _averages(c, c.grad)))
@gradients("adaptive_avg_pool2d(grad0)")
def adaptive_avg_pool_backward(grad: Tensor, extents: tuple[int, ...]) -> Inference:
    """Spread a gradient for adaptive means over their windows, in an input with these spatial extents."""
    name = "adaptive_avg_pool_backward"
    count = len(extents)
    if not 0 < count <= min(grad.ndim, 3):
        raise ShapeError(f"{name}: shape {list(grad.shape)} has no {count} spatial dimensions")
    if min(extents) <= 0:
        raise ShapeError(f"{name}: an input of extents {list(extents)} has no means")
    require(name, grad.dtype, (FLOATING,))
    found = new((*grad.shape[:-count], *extents), grad.dtype, grad.device, compute=grad.dtype)
    found.scratch = _averaging(extents, grad.shape[-count:])
    return found


def _adaptive_max(count: int, self: Meta, output_size: Outputs) -> Inference:
    shape = _adaptive(f"adaptive_max_pool{count}d", count, self, output_size, True)
    node = "SqueezeBackward1" if count == 1 else f"AdaptiveMaxPool{count}DBackward0"
    last = _format(count, self, shape)
    return _with_indices(new(shape, self.dtype, self.device, compute=self.dtype, stride=last, grad_fn=node))


@op(results=2, grad_fn="AdaptiveMaxPool2DBackward0", exposed=("function",))
@gradients("reshape(scatter_add(c, reshape(grad)))", saves="result1")
def adaptive_max_pool1d(self: Tensor, output_size: int | tuple[int | None, ...]) -> Inference:
    """Maxima over as many windows as ``output_size`` along the last dimension, and their indices."""
    return _adaptive_max(1, self, output_size)


@op(results=2, grad_fn="AdaptiveMaxPool2DBackward0", exposed=("function",))
@gradients("reshape(scatter_add(c, reshape(grad)))", saves="result1")
def adaptive_max_pool2d(self: Tensor, output_size: int | tuple[int | None, ...]) -> Inference:
    """Maxima over the windows of :func:`adaptive_avg_pool2d`, and their indices in the flattened image."""
    return _adaptive_max(2, self, output_size)


@op(results=2, grad_fn="AdaptiveMaxPool3DBackward0", exposed=("function",), autocast=CPU_FLOAT32)
@gradients("reshape(scatter_add(c, reshape(grad)))", saves="result1")
def adaptive_max_pool3d(self: Tensor, output_size: int | tuple[int | None, ...]) -> Inference:
    """Maxima over windows that divide volumes into ``output_size``, and their indices in the flattened volume."""
    return _adaptive_max(3, self, output_size)
