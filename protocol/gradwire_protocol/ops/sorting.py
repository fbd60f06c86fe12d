"""Sorting, selecting the largest, searching, and what can be told from sorted values."""

from __future__ import annotations

from typing import Final

from ..accepts import ORDERED, require
from ..costs import SORTING
from ..dtypes import BOOLEAN, int32, int64
from ..errors import ArgumentError, DTypeError
from ..meta import UNKNOWN, Inference, Meta, new, several
from ..promotion import Promote, ScalarKind, promote
from ..shapes import canonical_dim, like
from ..table import Out, Scalar, Tensor, gradients, op
from .views import extent_of, with_entry


def _refuse_complex(name: str, self: Meta) -> None:
    if self.dtype.is_complex:
        raise DTypeError(f"{name} is not defined for {self.dtype.name}, which has no order")


@op(grad_fn="SortBackward0", results=2, keyword_only=("stable",), along=True, cost=SORTING, out=Out.EXACT)
@gradients("gather_backward(grad)", saves="result1")
def sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Inference:
    """(the values in order along ``dim``, the indices they came from).

    NaN counts as largest. Equals always keep their order, whether or not ``stable`` asks for it.
    """
    _refuse_complex("sort", self)
    canonical_dim(dim, self.ndim)
    name = None if stable is None else "SortBackward1"
    return Inference((*like(self).outs, *like(self, dtype=int64).outs), self.dtype, grad_fn=name)


@op(keyword_only=("stable",), along=True, cost=SORTING)
def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Inference:
    """The indices that :func:`sort` gives."""
    _refuse_complex("argsort", self)
    canonical_dim(dim, self.ndim)
    return Inference(like(self, dtype=int64).outs, self.dtype)


@op(grad_fn="SortBackward0", cost=SORTING, out=Out.EXACT | Out.WHOLE)
@gradients("opaque()", saves="result1")
def msort(self: Tensor) -> Inference:
    """The values in order along the first dimension."""
    _refuse_complex("msort", self)
    return Inference(like(self).outs, self.dtype)


@op(grad_fn="TopkBackward0", results=2, along=True, cost=SORTING, out=Out.EXACT)
@gradients("gather_backward(grad)", saves="result1")
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Inference:
    """(the ``k`` largest, or smallest, elements along ``dim``, their indices), always in order, NaN as largest."""
    if self.dtype.is_complex or self.dtype.category == BOOLEAN:
        raise DTypeError(f"topk is not defined for {self.dtype.name}")
    at = canonical_dim(dim, self.ndim)
    extent = extent_of(self, at)
    if k < 0 or (k > extent and extent != UNKNOWN):
        raise ArgumentError(f"topk: k is {k}, dimension {at} of {self!r} has {extent} elements")
    shape = with_entry(self.shape, at, k) if self.shape else ()
    return several(new(shape, self.dtype, self.device, compute=self.dtype), new(shape, int64, self.device))


_UNDERIVED: Final = "which elements are distinct has no derivative; detach() the operand"


@op(grad_fn="Unique2Backward0", results=None, dynamic=True, underivable=_UNDERIVED, cost=SORTING)
def unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Inference:
    """The distinct elements (or, with ``dim``, the distinct slices along it), in order.

    ``return_inverse`` adds the place of each element among them, ``return_counts`` how often each occurs.
    """
    found = _distinct("unique", self, return_inverse, return_counts, dim)
    return found if dim is None else found.named("UniqueDimBackward0")


@op(grad_fn="UniqueConsecutiveBackward0", results=None, dynamic=True, underivable=_UNDERIVED, cost=SORTING)
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Inference:
    """The elements (or slices along ``dim``) that differ from the one before; results as of :func:`unique`."""
    return _distinct("unique_consecutive", self, return_inverse, return_counts, dim)


_KEY_BYTES: Final = 4096
"""What the array library needs for each key when it sorts by several: slices have one for each of their elements."""


def _distinct(name: str, self: Meta, inverse: bool, counts: bool, dim: int | None) -> Inference:
    _refuse_complex(name, self)
    if dim is None:
        parts = [new((UNKNOWN,), self.dtype, self.device, compute=self.dtype)]
        places = self.shape
    else:
        at = canonical_dim(dim, self.ndim)
        if any(extent == 0 for i, extent in enumerate(self.shape) if i != at):
            raise ArgumentError(f"{name}: slices of {self!r} along dimension {at} have no elements to compare")
        parts = [new(with_entry(self.shape, at, UNKNOWN), self.dtype, self.device, compute=self.dtype)]
        places = (extent_of(self, at),)
    if inverse:
        parts.append(new(places, int64, self.device))
    if counts:
        parts.append(new((UNKNOWN,), int64, self.device))
    found = several(*parts)
    if dim is not None and self.known:
        found.scratch = _KEY_BYTES * self.numel // max(places[0], 1)
    return found


def _searched(name: str, sequence: Meta, values: Meta | ScalarKind, out_int32: bool) -> Inference:
    operands = [(m.dtype, 1) if isinstance(m, Meta) else m for m in (sequence, values)]
    compute, _ = promote(Promote.DEFAULT, operands)
    _refuse_complex(name, sequence)
    require(name, compute, ORDERED)
    shape = values.shape if isinstance(values, Meta) else ()
    return new(shape, int32 if out_int32 else int64, sequence.device, compute=compute)


@op(keyword_only=("out_int32", "right"), cost=SORTING, out=Out.EXACT)
def searchsorted(
    sorted_sequence: Tensor, input: Tensor | Scalar, out_int32: bool = False, right: bool = False
) -> Inference:
    """Where each value would have to be inserted to keep the last dimension of ``sorted_sequence`` in order.

    The sequence is a vector, or has the same leading dimensions as the values. Among equals the first place is
    given, with ``right`` the one after the last.
    """
    if isinstance(input, Meta):
        if sorted_sequence.ndim != 1 and sorted_sequence.shape[:-1] != input.shape[:-1]:
            raise ArgumentError(
                f"searchsorted: sequences {sorted_sequence!r} and values {input!r} differ in a leading dimension"
            )
        if sorted_sequence.ndim == 0:
            raise ArgumentError("searchsorted: the sequence has no dimension")
    elif sorted_sequence.ndim != 1:
        raise ArgumentError(f"searchsorted: a number is looked up in a vector, not in {sorted_sequence!r}")
    return _searched("searchsorted", sorted_sequence, input, out_int32)


@op(keyword_only=("out_int32", "right"), cost=SORTING, out=Out.EXACT)
def bucketize(self: Tensor | Scalar, boundaries: Tensor, out_int32: bool = False, right: bool = False) -> Inference:
    """The number of the interval between sorted ``boundaries`` that each value falls into. A boundary belongs to the
    interval below it, with ``right`` to the one above."""
    if boundaries.ndim != 1:
        raise ArgumentError(f"bucketize: boundaries must be a vector, got {boundaries!r}")
    return _searched("bucketize", boundaries, self, out_int32)
