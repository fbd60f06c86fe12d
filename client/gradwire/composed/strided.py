"""Fresh tensors under strides that the program chooses."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..creation import empty, finish, full
from ..dispatch import call
from ..methods import FUNCTIONS, attach, offer
from ..outputs import resize_, resize_as_
from ..sessions import get_default_dtype
from ..tensor import Tensor
from .copies import copying

_as_strided = FUNCTIONS["as_strided"]
_as_strided_scatter = FUNCTIONS["as_strided_scatter"]


@offer
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A view of the tensor's memory with any size and strides, both in elements.

    ``storage_offset`` counts from the beginning of the memory, not of the tensor, which is the default.

    Raises:
        ArgumentError: for a negative offset.
        ShapeError: for a geometry that is none, or that reaches beyond the memory.
    """
    own = storage_offset is None
    return _as_strided(input, size, stride, 0 if own else storage_offset, absolute=not own)


offer(copying("as_strided", as_strided), method=False)


@offer
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A copy of the tensor with ``src`` written into the part that :func:`as_strided` shows. One round trip where an
    offset is given.

    Raises:
        ShapeError: for a geometry that is none, or that reaches beyond the tensor.
    """
    begin = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return _as_strided_scatter(input, src, size, stride, begin)


def empty_strided(size: Any, stride: Any, *, requires_grad: bool = False, **options: Any) -> Any:
    """Uninitialised, of a size, with the given strides (in elements).

    Raises:
        ArgumentError: when there are not as many strides as extents.
    """
    if len(size) != len(stride):
        raise ArgumentError(f"empty_strided: {len(size)} extents do not go with {len(stride)} strides")
    held = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    shown = call("as_strided", empty(held, **options), tuple(size), tuple(stride), 0)
    return finish(shown.detach(), requires_grad)


def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Any:
    """Uninitialised, dense, with the dimensions in memory in the order ``physical_layout``, the outermost first.

    Raises:
        ArgumentError: when the layout is no permutation of the dimensions.
    """
    order = tuple(physical_layout)
    if sorted(order) != list(range(len(size))):
        raise ArgumentError(f"empty_permuted: {list(order)} is no permutation of the {len(size)} dimensions")
    stride, step = [0] * len(order), 1
    for dim in reversed(order):
        stride[dim], step = step, step * max(size[dim], 1)
    return empty_strided(tuple(size), tuple(stride), **options)


def new_empty_strided(self: Tensor, size: Any, stride: Any, **options: Any) -> Any:
    """:func:`empty_strided`, of the dtype and on the device of a tensor unless others are given."""
    options.setdefault("dtype", self.dtype)
    options.setdefault("device", self.device)
    return empty_strided(size, stride, **options)


def scalar_tensor(s: Any, **options: Any) -> Any:
    """A 0-dim tensor of a number, of the default float dtype unless another is given."""
    if options.get("dtype") is None:
        options["dtype"] = get_default_dtype()
    return full((), s, **options)


attach("resize_", resize_)
attach("resize_as_", resize_as_)
attach("new_empty_strided", new_empty_strided)
for _plain in (empty_strided, empty_permuted, scalar_tensor, resize_as_):
    offer(_plain, method=False)
