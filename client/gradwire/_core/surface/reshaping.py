"""In-place forms of views: ``x.unsqueeze_(0)`` turns the tensor itself into the view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import GraphError
from gradwire_protocol.history import PLAIN, WHY_NOT

from ..context.modes import enable_grad, is_grad_enabled
from ..dispatch.dispatch import call
from ..tensor.tensor import Tensor, hand_over
from .methods import attach


def _becomes(self: Tensor, op: str, *args: Any, **options: Any) -> Any:
    """Let the proxy stand for a view of what it stood for.

    With gradients off a leaf stays a leaf, of other memory, and any other tensor keeps its history: that of the view
    goes through it.

    Raises:
        GraphError: for a leaf that requires grad, and a view that cannot take part in history, with gradients on.
    """
    leaf = self.is_leaf and self._requires
    if not is_grad_enabled():
        if leaf:
            self.data = call(op, self.data, *args, **options)
            return self
        if self.requires_grad:
            with enable_grad():
                hand_over(call(op, self, *args, **options), self)
            return self
    elif leaf:
        raise GraphError(f"{op}_: a leaf that requires grad cannot become a view of itself; use {op}, or detach() it")
    elif self._base_tensor is not None and self._creation != PLAIN and self._base_tensor.requires_grad:
        raise GraphError(f"{op}_: {WHY_NOT[self._creation]}")
    hand_over(call(op, self, *args, **options), self)
    return self


def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Drop dimensions of extent 1 from the tensor itself."""
    return _becomes(self, "squeeze", *(() if dim is None else (dim,)))


def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Insert a dimension of extent 1 into the tensor itself."""
    return _becomes(self, "unsqueeze", dim)


def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions of the tensor itself."""
    return _becomes(self, "transpose", dim0, dim1)


def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """NumPy's name of :func:`transpose_`."""
    return transpose_(self, axis0, axis1)


def t_(self: Tensor) -> Tensor:
    """Transpose the matrix itself."""
    return _becomes(self, "t")


def as_strided_(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Lay another shape and strides over the tensor's memory: see :func:`as_strided`."""
    begin = 0 if storage_offset is None else storage_offset
    return _becomes(self, "as_strided", tuple(size), tuple(stride), begin, absolute=storage_offset is not None)


for _method in (squeeze_, unsqueeze_, transpose_, t_, as_strided_):
    attach(_method.__name__, _method)
attach("swapaxes_", swapaxes_)
attach("swapdims_", transpose_)
