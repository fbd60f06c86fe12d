"""Operations of ``torch.ops.aten`` that are neither functions of ``torch`` nor methods of tensors under their names."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Final

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError

from ..context.layouts import layout as Layout
from ..context.layouts import memory_format as MemoryFormat
from ..context.layouts import preserve_format, strided
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..surface.conversions import reordered
from ..surface.creation import place
from ..tensor.tensor import Tensor

_ALL: Final = builtins.slice(None)


def _to_copy(
    input: Tensor, *, dtype: DType | None = None, layout: Layout | None = None, device: Device | str | None = None,
    pin_memory: bool | None = None, non_blocking: bool = False, memory_format: MemoryFormat | None = None,
) -> Tensor:  # fmt: skip
    """A copy, in another dtype and on another device where they are given.

    Raises:
        ArgumentError: for a layout that is not strided.
    """
    if layout not in (None, strided):
        raise ArgumentError(f"_to_copy: tensors are strided, not {layout}")
    where = None if device is None else place(device)
    return reordered(input, memory_format or preserve_format, dtype, where, True)


def alias(input: Tensor) -> Any:
    """A view of the whole tensor."""
    return call("view", input, tuple(input.shape)) if input.is_contiguous() else input[...]


def slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """A view of every ``step``-th index of a dimension, from ``start`` to before ``end``."""
    before = dim % max(input.ndim, 1)
    return input[(*[_ALL] * before, builtins.slice(start, end, step))]


def index(input: Tensor, indices: Sequence[Tensor | None]) -> Any:
    """The elements at indices of the first dimensions; None stands for a whole dimension."""
    return input[tuple(_ALL if one is None else one for one in indices)]


def _unsafe_view(input: Tensor, size: Sequence[int]) -> Any:
    """The elements in another shape."""
    return call("view", input, tuple(size))


def _local_scalar_dense(input: Tensor) -> Any:
    """The number in a tensor of one element."""
    return input.item()


def _softmax(input: Tensor, dim: int, half_to_float: bool = False) -> Any:
    """Softmax along a dimension."""
    return call("softmax", input.float() if half_to_float else input, dim)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool = False) -> Any:
    """The logarithm of softmax along a dimension."""
    return call("log_softmax", input.float() if half_to_float else input, dim)


def _pin_memory(input: Tensor, device: Device | str | None = None) -> Tensor:
    """The tensor itself: its memory is the server's."""
    return input


def sym_size(input: Tensor, dim: int | None = None) -> Any:
    """The shape, or one extent of it."""
    return input.size(dim) if dim is not None else input.shape


def sym_stride(input: Tensor, dim: int | None = None) -> Any:
    """The strides, or one of them."""
    return input.stride(dim)


def sym_numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def sym_storage_offset(input: Tensor) -> Any:
    """Where in its memory the tensor begins."""
    return input.storage_offset()


def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """The gradient of sigmoid, from its result."""
    return grad_output * (output.conj() * (1 - output.conj()) if output.is_complex() else output * (1 - output))


def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """The gradient of tanh, from its result."""
    return grad_output * (1 - (output.conj() if output.is_complex() else output) ** 2)
