"""Convolutions in one, two and three dimensions, and their transposes.

A plain convolution, the gradient for its input and the gradient for its weight are each linear in the two tensors
they are made from, and each is the derivative of the others: three primitives closed under differentiation.
"""

from __future__ import annotations

from math import prod
from typing import Final

from ..autocast import LOWER
from ..costs import Cost, numel
from ..errors import ArgumentError, DTypeError, ShapeError
from ..meta import UNKNOWN, Inference, Meta, Shape, new
from ..shapes import channels_last_stride, common_device, rows_channels_last_stride
from ..table import Tensor, gradients, op
from .matrix import fits, need_numbers

Size = int | tuple[int, ...]

COLUMN_BYTES: Final = 1 << 22
"""A convolution unrolls at most this many bytes of its input at a time."""


def spatial(name: str, value: Size, count: int, what: str) -> tuple[int, ...]:
    """One int per spatial dimension.

    Raises:
        ArgumentError: for another number of ints.
    """
    if isinstance(value, int):
        return (value,) * count
    if len(value) == 1:
        return value * count
    if len(value) != count:
        raise ArgumentError(f"{name}: {what} takes 1 or {count} values, got {list(value)}")
    return tuple(value)


class Geometry:
    """Where a convolution's windows lie: per spatial dimension, stride, padding before and after, dilation."""

    __slots__ = ("after", "before", "dilation", "kernel", "stride")

    def __init__(
        self, name: str, kernel: Shape, stride: Size, padding: Size | str, dilation: Size, least: int = 0
    ) -> None:
        count = len(kernel)
        self.kernel = kernel
        self.stride = spatial(name, stride, count, "stride")
        self.dilation = spatial(name, dilation, count, "dilation")
        if min(self.stride) <= 0:
            raise ArgumentError(f"{name}: stride must be positive, got {list(self.stride)}")
        if min(self.dilation) <= 0:
            raise ArgumentError(f"{name}: dilation must be positive, got {list(self.dilation)}")
        if isinstance(padding, str):
            total = self._named_padding(name, padding)
            self.before = tuple(t // 2 for t in total)
            self.after = tuple(t - t // 2 for t in total)
        else:
            self.before = self.after = spatial(name, padding, count, "padding")
            if min(self.before) < least:
                raise ArgumentError(f"{name}: padding must not be negative, got {list(self.before)}")

    def _named_padding(self, name: str, padding: str) -> tuple[int, ...]:
        if padding == "valid":
            return (0,) * len(self.kernel)
        if padding != "same":
            raise ArgumentError(f"{name}: padding is a number of elements, 'same' or 'valid', got {padding!r}")
        if any(s != 1 for s in self.stride):
            raise ArgumentError(f"{name}: padding='same' needs stride 1, got {list(self.stride)}")
        return tuple(d * (k - 1) for d, k in zip(self.dilation, self.kernel, strict=True))

    def outputs(self, extents: Shape) -> Shape:
        """How many windows fit along each dimension."""
        return tuple(
            (n + p + q - d * (k - 1) - 1) // s + 1
            for n, p, q, d, k, s in zip(
                extents, self.before, self.after, self.dilation, self.kernel, self.stride, strict=True
            )
        )


def _check(
    name: str, count: int, self: Meta, weight: Meta, bias: Meta | None, groups: int, taken: int, made: int
) -> None:
    """Check what all convolutions have in common: the input has ``taken`` channels, the bias ``made`` elements."""
    if weight.ndim != count + 2:
        raise ShapeError(f"{name}: the weight must have {count + 2} dimensions; its shape is {list(weight.shape)}")
    if self.ndim not in (count + 1, count + 2):
        raise ShapeError(
            f"{name}: the input must have {count + 1} dimensions, or {count + 2} with a batch; its shape is "
            f"{list(self.shape)}"
        )
    if 0 in weight.shape[2:]:
        raise ShapeError(f"{name}: a window of {list(weight.shape[2:])} has no elements")
    if weight.shape[0] % groups:
        raise ShapeError(f"{name}: weight of shape {list(weight.shape)} cannot be divided into {groups} groups")
    if not fits(self.shape[-count - 1], taken):
        raise ShapeError(
            f"{name}: with groups={groups} a weight of shape {list(weight.shape)} takes {taken} channels, the input "
            f"of shape {list(self.shape)} has {self.shape[-count - 1]}"
        )
    if bias is not None and bias.shape != (made,):
        raise ShapeError(f"{name}: the bias must have shape {[made]}, it has {list(bias.shape)}")
    for label, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype is not self.dtype:
            raise DTypeError(f"{name} does not promote: the input is {self.dtype.name}, the {label} {other.dtype.name}")
    need_numbers(name, self.dtype)


def _need_groups(name: str, groups: int, *channels: int) -> None:
    """Check that there are groups, into which all these numbers of channels divide."""
    if groups <= 0:
        raise ArgumentError(f"{name}: groups must be positive, got {groups}")
    for count in channels:
        if count % groups and count != UNKNOWN:
            raise ShapeError(f"{name}: {count} channels do not divide into {groups} groups")


def _result(
    count: int, self: Meta, weight: Meta, bias: Meta | None, channels: int, extents: Shape, geometry: Geometry,
    groups: int,
) -> Inference:  # fmt: skip
    shape = (*self.shape[: -count - 1], channels, *extents)
    stride = _format(count, self, weight, shape, geometry, groups)
    node = "SqueezeBackward1" if self.ndim == count + 1 else "ConvolutionBackward0"
    node = "AddBackward0" if self.dtype.is_complex and self.ndim == count + 2 else node
    result = new(shape, self.dtype, common_device(self, weight, bias), compute=self.dtype, stride=stride, grad_fn=node)
    size = self.dtype.itemsize * prod(self.shape[:-count])
    result.scratch = _scratch(size, extents, geometry)
    return result


def _format(count: int, self: Meta, weight: Meta, shape: Shape, geometry: Geometry, groups: int) -> Shape | None:
    """The result's strides: channels last where the input or the weight are. PyTorch gives an input of one dimension
    another order before it looks at it, and an input without a batch one that suggests none."""
    if self.ndim == count + 1:
        kept = count < 3 or _keeps_volumes(self, 1, geometry, groups)
        found = _format_of(count, None, weight, (1, *shape)) if kept else None
        return None if found is None else found[1:]
    if count == 3 and not _keeps_volumes(self, self.shape[0], geometry, groups):
        return None
    return _format_of(count, self, weight, shape)


def _format_of(count: int, self: Meta | None, weight: Meta, shape: Shape) -> Shape | None:
    if count == 1:
        return rows_channels_last_stride(weight, shape)
    found = None if self is None else channels_last_stride(self, shape)
    return found or channels_last_stride(weight, shape)


def _keeps_volumes(self: Meta, batch: int, geometry: Geometry, groups: int) -> bool:
    """Whether PyTorch gives volumes to oneDNN, which keeps the format: no double precision, no integers, no complex
    numbers, and no single small volume."""
    if not self.dtype.is_floating_point or self.dtype.itemsize > 4:
        return False
    large = prod(self.shape[:-1]) > _LARGE_VOLUME or min(geometry.kernel[1:]) > 3
    return batch > 1 or groups > 1 or large


_LARGE_VOLUME: Final = 20_480


def _convolution(
    name: str, count: int, self: Meta, weight: Meta, bias: Meta | None, stride: Size, padding: Size | str,
    dilation: Size, groups: int,
) -> Inference:  # fmt: skip
    _need_groups(name, groups)
    taken = weight.shape[1] * groups if weight.ndim > 1 else 0
    _check(name, count, self, weight, bias, groups, taken, weight.shape[0] if weight.ndim else 0)
    geometry = Geometry(name, weight.shape[2:], stride, padding, dilation)
    extents = geometry.outputs(self.shape[-count:])
    if min(extents, default=1) <= 0:
        padded = [n + p + q for n, p, q in zip(self.shape[-count:], geometry.before, geometry.after, strict=True)]
        reach = [d * (k - 1) + 1 for d, k in zip(geometry.dilation, geometry.kernel, strict=True)]
        raise ShapeError(f"{name}: the padded input, {padded}, is smaller than the kernel's reach, {reach}")
    return _result(count, self, weight, bias, weight.shape[0], extents, geometry, groups)


def _windows(made: int, weight: Meta) -> int:
    """Steps: each element on the side of ``weight``'s first dimension meets all but that one."""
    return made * prod(weight.shape[1:])


_FORWARD: Final = Cost(lambda c: _windows(c.made, c.weight))
_TRANSPOSED: Final = Cost(lambda c: _windows(numel(c.self), c.weight))


def _of_convolution(dims: int, by_self: str, by_weight: str) -> dict[str, str]:
    """The gradients of a convolution, which has one dimension less without a batch."""
    batched = f"self.ndim == {dims + 2}"
    one = by_weight.replace("grad", "unsqueeze(grad)").replace("self", "unsqueeze(self)")
    return {
        "self": (
            f"{by_self}(grad, conj(weight)) if {batched}"
            f" else squeeze.SqueezeBackward1({by_self}(unsqueeze(grad), conj(weight)))"
        ),
        "weight": f"{by_weight} if {batched} else {one}",
        "bias": "sum_dim(grad)",
    }


def _of_forward(dims: int) -> dict[str, str]:
    return _of_convolution(dims, "convolution_input", "convolution_weight(grad, conj(self))")


def _of_transposed(dims: int) -> dict[str, str]:
    return _of_convolution(dims, "convolution", "convolution_weight(conj(self), grad)")


@op(grad_fn="ConvolutionBackward0", exposed=("function", "nn.functional"), cost=_FORWARD, total=True, autocast=LOWER)
@gradients(**_of_forward(1))
def conv1d(
    self: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1,
    padding: int | str | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1,
) -> Inference:  # fmt: skip
    """Slide kernels along one dimension: ``(N, C, L)`` or ``(C, L)`` with a weight ``(O, C / groups, K)`` gives
    ``(N, O, L')``. See :func:`conv2d`."""
    return _convolution("conv1d", 1, self, weight, bias, stride, padding, dilation, groups)


@op(grad_fn="ConvolutionBackward0", exposed=("function", "nn.functional"), cost=_FORWARD, total=True, autocast=LOWER)
@gradients(**_of_forward(2))
def conv2d(
    self: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1,
    padding: int | str | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1,
) -> Inference:  # fmt: skip
    """Slide kernels over images: ``(N, C, H, W)`` or ``(C, H, W)`` with a weight ``(O, C / groups, KH, KW)`` gives
    ``(N, O, H', W')``, as a correlation (the kernel is not flipped).

    ``padding`` zeros surround the input; ``"valid"`` is none, ``"same"`` as many as keep the size (stride 1 only).
    With ``groups`` each group of outputs sees only its group of channels. All operands have one dtype. Shapes that
    do not fit raise RuntimeError.
    """
    return _convolution("conv2d", 2, self, weight, bias, stride, padding, dilation, groups)


@op(grad_fn="ConvolutionBackward0", exposed=("function", "nn.functional"), cost=_FORWARD, total=True, autocast=LOWER)
@gradients(**_of_forward(3))
def conv3d(
    self: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1,
    padding: int | str | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1,
) -> Inference:  # fmt: skip
    """Slide kernels through volumes: ``(N, C, D, H, W)`` or ``(C, D, H, W)`` with a weight of five dimensions. See
    :func:`conv2d`."""
    return _convolution("conv3d", 3, self, weight, bias, stride, padding, dilation, groups)


def _transposed(
    name: str, count: int, self: Meta, weight: Meta, bias: Meta | None, stride: Size, padding: Size,
    output_padding: Size, groups: int, dilation: Size,
) -> Inference:  # fmt: skip
    _need_groups(name, groups)
    channels = weight.shape[1] * groups if weight.ndim > 1 else 0
    _check(name, count, self, weight, bias, groups, weight.shape[0] if weight.ndim else 0, channels)
    geometry = Geometry(name, weight.shape[2:], stride, padding, dilation)
    extents = transposed_extents(name, self.shape[-count:], geometry, output_padding)
    return _result(count, self, weight, bias, channels, extents, geometry, groups)


def transposed_extents(name: str, extents: Shape, geometry: Geometry, output_padding: Size) -> Shape:
    """The extents of a transposed convolution's result.

    Raises:
        ArgumentError: for an output padding that is not smaller than stride or dilation.
        ShapeError: when nothing is left.
    """
    extra = spatial(name, output_padding, len(extents), "output_padding")
    for e, s, d in zip(extra, geometry.stride, geometry.dilation, strict=True):
        if e < 0:
            raise ArgumentError(f"{name}: output_padding must not be negative, got {list(extra)}")
        if e >= s and e >= d:
            raise ArgumentError(
                f"{name}: output_padding {list(extra)} must be smaller than stride {list(geometry.stride)} or dilation "
                f"{list(geometry.dilation)}"
            )
    result = tuple(
        (n - 1) * s - p - q + d * (k - 1) + e + 1
        for n, s, p, q, d, k, e in zip(
            extents, geometry.stride, geometry.before, geometry.after, geometry.dilation, geometry.kernel, extra,
            strict=True,
        )
    )  # fmt: skip
    if min(result, default=1) <= 0:
        raise ShapeError(f"{name}: an input of extents {list(extents)} gives extents {list(result)}, which are empty")
    return result


@op(grad_fn="ConvolutionBackward0", exposed=("function", "nn.functional"), cost=_TRANSPOSED, autocast=LOWER)
@gradients(**_of_transposed(1))
def conv_transpose1d(
    self: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0, output_padding: int | tuple[int, ...] = 0, groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Inference:  # fmt: skip
    """The transpose of :func:`conv1d`: ``(N, C, L)`` with a weight ``(C, O / groups, K)`` gives ``(N, O, L')``. See
    :func:`conv_transpose2d`."""
    return _transposed("conv_transpose1d", 1, self, weight, bias, stride, padding, output_padding, groups, dilation)


@op(grad_fn="ConvolutionBackward0", exposed=("function", "nn.functional"), cost=_TRANSPOSED, autocast=LOWER)
@gradients(**_of_transposed(2))
def conv_transpose2d(
    self: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0, output_padding: int | tuple[int, ...] = 0, groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Inference:  # fmt: skip
    """The transpose of :func:`conv2d` as a linear map: every input element lays a scaled kernel onto the output.

    A weight has shape ``(C, O / groups, KH, KW)``. ``padding`` is cut from the result's edges, and ``output_padding``
    is added to its ends, to tell apart the sizes that a strided convolution maps to one.
    """
    return _transposed("conv_transpose2d", 2, self, weight, bias, stride, padding, output_padding, groups, dilation)


@op(grad_fn="ConvolutionBackward0", exposed=("function", "nn.functional"), cost=_TRANSPOSED, autocast=LOWER)
@gradients(**_of_transposed(3))
def conv_transpose3d(
    self: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0, output_padding: int | tuple[int, ...] = 0, groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Inference:  # fmt: skip
    """The transpose of :func:`conv3d`, with a weight ``(C, O / groups, KD, KH, KW)``. See :func:`conv_transpose2d`."""
    return _transposed("conv_transpose3d", 3, self, weight, bias, stride, padding, output_padding, groups, dilation)


# The three primitives, which clients offer nowhere by name. ``extents`` says what a stride leaves open; padding is what
# precedes the first element.


@op(grad_fn="ConvolutionBackward0", exposed=(), multilinear=True, cost=_FORWARD)
@gradients(self="convolution_input(grad, weight)", weight="convolution_weight(grad, self)")
def convolution(
    self: Tensor, weight: Tensor, extents: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    dilation: tuple[int, ...], groups: int,
) -> Inference:  # fmt: skip
    """A convolution with ``extents`` windows; what they reach beyond the input counts as zeros."""
    name = "convolution"
    _need_ranks(name, extents, (stride, padding, dilation), self, weight)
    _need_groups(name, groups, weight.shape[0])
    shape = (self.shape[0], weight.shape[0], *extents)
    channels, between = (self.shape[1], weight.shape[1] * groups), (self.shape[2:], extents)
    geometry = Geometry(name, weight.shape[2:], stride, padding, dilation)
    return _primitive(name, shape, self, weight, channels, self.shape[1], between, geometry)


@op(
    grad_fn="ConvolutionBackwardBackward0", exposed=(), multilinear=True,
    cost=Cost(lambda c: _windows(numel(c.grad), c.weight)),
)  # fmt: skip
@gradients(grad="convolution(grad0, weight)", weight="convolution_weight(grad, grad0)")
def convolution_input(
    grad: Tensor, weight: Tensor, extents: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    dilation: tuple[int, ...], groups: int,
) -> Inference:  # fmt: skip
    """The gradient of a convolution for its input, whose spatial extents are given."""
    name = "convolution_input"
    _need_ranks(name, extents, (stride, padding, dilation), grad, weight)
    taken = weight.shape[1] * groups
    _need_groups(name, groups, weight.shape[0])
    shape = (grad.shape[0], taken, *extents)
    channels, between = (grad.shape[1], weight.shape[0]), (extents, grad.shape[2:])
    geometry = Geometry(name, weight.shape[2:], stride, padding, dilation)
    found = _primitive(name, shape, grad, weight, channels, taken, between, geometry)
    # With stride 1 it may be computed as a convolution of the gradient, with a window for each element of the input.
    windows = grad.dtype.itemsize * prod(shape[:1]) * grad.shape[1] * prod(weight.shape[2:]) * prod(extents)
    found.scratch += min(max(windows, 0), COLUMN_BYTES)
    return found


@op(
    grad_fn="ConvolutionBackwardBackward0", exposed=(), multilinear=True,
    cost=Cost(lambda c: numel(c.grad) * (c.self.shape[1] // max(c.groups, 1)) * prod(c.extents)),
)  # fmt: skip
@gradients(grad="convolution(self, grad0)", self="convolution_input(grad, grad0)")
def convolution_weight(
    grad: Tensor, self: Tensor, extents: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    dilation: tuple[int, ...], groups: int,
) -> Inference:  # fmt: skip
    """The gradient of a convolution for its weight, whose spatial extents are given."""
    name = "convolution_weight"
    _need_ranks(name, extents, (stride, padding, dilation), grad, self)
    _need_groups(name, groups, grad.shape[1], self.shape[1])
    shape = (grad.shape[1], self.shape[1] // groups, *extents)
    batches, between = (grad.shape[0], self.shape[0]), (self.shape[2:], grad.shape[2:])
    geometry = Geometry(name, extents, stride, padding, dilation)
    return _primitive(name, shape, grad, self, batches, self.shape[1], between, geometry)


def _need_ranks(name: str, extents: Shape, walks: tuple[Shape, ...], *operands: Meta) -> None:
    """Check that there are up to three spatial dimensions, and as many in operands, strides, padding and dilation."""
    count = len(extents)
    if not 1 <= count <= 3 or any(operand.ndim != count + 2 for operand in operands):
        listed = " and ".join(str(list(operand.shape)) for operand in operands)
        raise ShapeError(f"{name}: operands of shape {listed} do not have the 1 to 3 dimensions of {list(extents)}")
    if any(len(walk) != count for walk in walks):
        listed = ", ".join(str(list(walk)) for walk in walks)
        raise ArgumentError(f"{name}: stride, padding and dilation have {count} values each, they are {listed}")


def _primitive(
    name: str, shape: Shape, a: Meta, b: Meta, paired: tuple[int, int], taken: int, between: tuple[Shape, Shape],
    geometry: Geometry,
) -> Inference:  # fmt: skip
    """The result, of this ``shape``, of what is between an input and an output of these spatial extents.

    Args:
        paired: the extents of both operands that belong together.
        taken: channels of the input.
    """
    inputs, outputs = between
    if min(shape[2:]) <= 0 or min(geometry.kernel) <= 0 or 0 in outputs or not fits(*paired):
        raise ShapeError(f"{name}: shapes {list(a.shape)} and {list(b.shape)} cannot give {list(shape)}")
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name} does not promote: its operands are {a.dtype.name} and {b.dtype.name}")
    need_numbers(name, a.dtype)
    for extent, count, p, d, k, s in zip(
        inputs, outputs, geometry.before, geometry.dilation, geometry.kernel, geometry.stride, strict=True
    ):
        left = extent + 2 * p - d * (k - 1) - 1 - (count - 1) * s
        # padding="same" may add one zero more behind the input, and a transposed convolution has output padding
        if UNKNOWN not in (extent, count) and not -1 <= left < max(s, d):
            raise ShapeError(
                f"{name}: {count} windows of {k} elements, {s} apart, with dilation {d} and padding {p}, are not those "
                f"of an input of {extent}"
            )
    result = new(shape, a.dtype, common_device(a, b), compute=a.dtype)
    result.scratch = _scratch(a.dtype.itemsize * shape[0] * taken, outputs, geometry)
    return result


def _scratch(bytes_per_position: int, outputs: Shape, geometry: Geometry) -> int:
    """Bytes of a padded copy of the input, and of the columns."""
    padded = prod(
        n * s + d * k + p
        for n, s, d, k, p in zip(
            outputs, geometry.stride, geometry.dilation, geometry.kernel, geometry.before, strict=True
        )
    )
    size = max(bytes_per_position, 0)
    return size * padded + min(size * prod(outputs) * prod(geometry.kernel), COLUMN_BYTES)
