"""``torch.nn.grad``: the gradients of convolutions as functions, for extents that a stride leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from gradwire_protocol.errors import ShapeError

from .._core.context.argument_types import Extents
from .._core.surface.methods import FUNCTIONS
from .._core.tensor.tensor import Tensor
from .sizes import per_dimension


def _input(
    count: int, input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Extents, padding: Extents,
    dilation: Extents, groups: int,
) -> Tensor:  # fmt: skip
    name, size = f"conv{count}d_input", tuple(input_size)
    _need_batches(name, count, size, grad_output.shape)
    strides, paddings, dilations = (per_dimension(value, count) for value in (stride, padding, dilation))
    # What a stride leaves open is smaller than the stride where grad_output fits the input.
    open_ends = tuple(
        n - ((out - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, out, k, s, p, d in zip(
            size[2:], grad_output.shape[2:], weight.shape[2:], strides, paddings, dilations, strict=True
        )
    )
    expected = (grad_output.shape[0], weight.shape[1] * groups)
    if size[:2] != expected or any(not 0 <= e < s for e, s in zip(open_ends, strides, strict=True)):
        raise ShapeError(
            f"{name}: an input of shape {list(size)} and a weight of shape {list(weight.shape)} do not give a result "
            f"of shape {list(grad_output.shape)}"
        )
    transposed = FUNCTIONS[f"conv_transpose{count}d"]
    return transposed(grad_output, weight, None, strides, paddings, open_ends, groups, dilations)


def _weight(
    count: int, input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Extents, padding: Extents,
    dilation: Extents, groups: int,
) -> Tensor:  # fmt: skip
    name, size = f"conv{count}d_weight", tuple(weight_size)
    _need_batches(name, count, input.shape, grad_output.shape)
    batch, channels, *extents = input.shape
    made, *outputs = grad_output.shape[1:]
    if size[:2] != (made, channels // groups) or grad_output.shape[0] != batch or len(size) != count + 2:
        raise ShapeError(
            f"{name}: an input of shape {list(input.shape)} and a result of shape {list(grad_output.shape)} do not "
            f"have a weight of shape {list(size)}"
        )
    # A correlation of the input with the gradient: batches take the place of channels, stride that of dilation.
    images = input.reshape(batch, groups, channels // groups, *extents).transpose(0, 2)
    kernels = grad_output.reshape(batch, groups, made // groups, *outputs).movedim(0, 2)
    found = FUNCTIONS[f"conv{count}d"](
        images.reshape(channels // groups, groups * batch, *extents),
        kernels.reshape(made, batch, *outputs),
        None, dilation, padding, stride, groups,
    )  # fmt: skip
    if any(n < k for n, k in zip(found.shape[2:], size[2:], strict=True)):
        raise ShapeError(f"{name}: an input of shape {list(input.shape)} has no room for a weight of {list(size)}")
    for dim, extent in enumerate(size[2:], start=2):
        found = found.narrow(dim, 0, extent)
    return found.transpose(0, 1).contiguous()


def _need_batches(name: str, count: int, *shapes: Sequence[int]) -> None:
    for shape in shapes:
        if len(shape) != count + 2:
            raise ShapeError(f"{name}: input and result have {count + 2} dimensions, one has the shape {list(shape)}")


def conv1d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Extents = 1, padding: Extents = 0,
    dilation: Extents = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of ``conv1d`` for an input of shape ``input_size``, from that of its result."""
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Extents = 1, padding: Extents = 0,
    dilation: Extents = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of ``conv1d`` for a weight of shape ``weight_size``, from that of its result."""
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Extents = 1, padding: Extents = 0,
    dilation: Extents = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of ``conv2d`` for an input of shape ``input_size``, from that of its result."""
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Extents = 1, padding: Extents = 0,
    dilation: Extents = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of ``conv2d`` for a weight of shape ``weight_size``, from that of its result."""
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Extents = 1, padding: Extents = 0,
    dilation: Extents = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of ``conv3d`` for an input of shape ``input_size``, from that of its result."""
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Extents = 1, padding: Extents = 0,
    dilation: Extents = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of ``conv3d`` for a weight of shape ``weight_size``, from that of its result."""
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
