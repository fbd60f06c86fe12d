"""Writes to places given by indices, in the forms that the table does not have."""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol.errors import ArgumentError, ShapeError
from gradwire_protocol.shapes import canonical_dim

from ..dispatch import call
from ..methods import attach, offer
from ..tensor import Tensor


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Any:
    """A copy in which ``input[..., index[i], ...]`` is ``src[i]``, or a number; added or multiplied with ``reduce``.

    Raises:
        ArgumentError: for another ``reduce``.
    """
    return call(*_scattered("", input, dim, index, value if src is None else src, reduce))


def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Any:
    """In-place form of :func:`scatter`."""
    return call(*_scattered("_", self, dim, index, value if src is None else src, reduce))


def _scattered(suffix: str, self: Tensor, dim: int, index: Tensor, source: Any, reduce: str | None) -> tuple[Any, ...]:
    """The op of the table, and what it is called with."""
    if reduce is None:
        return f"scatter{suffix}", self, dim, index, source
    if reduce not in ("add", "multiply"):
        raise ArgumentError(f"scatter: reduce is 'add' or 'multiply', not {reduce!r}")
    if isinstance(source, Tensor):
        warnings.warn("scatter: reduce= with a tensor is deprecated in favour of scatter_reduce", stacklevel=3)
    else:
        source = call("full_like", index, source, dtype=self.dtype)
    return f"scatter_reduce{suffix}", self, dim, index, source, "sum" if reduce == "add" else "prod", True


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """A copy in which slice ``i`` of ``source`` is combined with slice ``index[i]`` along a dimension.

    ``reduce`` is "prod", "mean", "amax" or "amin"; with ``include_self`` the slice that was there counts, too.

    Raises:
        ArgumentError: for another ``reduce``.
        ShapeError: when the index is no vector, or not as long as the dimension of ``source``.
    """
    return call("scatter_reduce", input, dim, *_spread(input, dim, index, source, reduce), include_self)


def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """In-place form of :func:`index_reduce`."""
    return call("scatter_reduce_", self, dim, *_spread(self, dim, index, source, reduce), include_self)


def _spread(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> tuple[Tensor, Tensor, str]:
    """The index of :func:`index_reduce` as scatter_reduce takes it: one place an element."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentError(f"index_reduce: reduce is 'prod', 'mean', 'amax' or 'amin', not {reduce!r}")
    if index.ndim > 1:
        raise ShapeError(f"index_reduce: the index is a vector, not of shape {list(index.shape)}")
    if source.ndim == 0:
        return call("reshape", index, (1,) * self.ndim), call("reshape", source, (1,) * self.ndim), reduce
    at = canonical_dim(dim, source.ndim)
    if index.numel() != source.shape[at]:
        raise ShapeError(f"index_reduce: {index.numel()} indices for {source.shape[at]} slices of source")
    line = call("reshape", index, tuple(-1 if i == at else 1 for i in range(source.ndim)))
    return call("expand", line, tuple(source.shape)), source, reduce


attach("index_reduce_", index_reduce_)
attach("scatter_", scatter_)
for _function in (scatter, index_reduce):
    offer(_function)
