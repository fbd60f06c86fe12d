"""Reductions that choose an element: extremes, medians, modes, quantiles."""

from __future__ import annotations

from typing import Final

from ..autocast import CPU_FLOAT32
from ..costs import SORTING
from ..dtypes import BOOLEAN, int64
from ..errors import ArgumentError, DTypeError, IndexOutOfRange, Unsupported
from ..meta import Inference, Meta, new, several
from ..shapes import canonical_dim, canonical_dims, reduction
from ..table import Float, Out, Tensor, gradients, op
from .reduction import Dims, refuse_complex


def need_elements(name: str, self: Meta, dims: Dims) -> None:
    """A reduction without a neutral element needs at least one element to choose from."""
    if not self.shape or 0 not in self.shape:
        return
    if dims is None or dims == ():
        raise ArgumentError(f"{name} of the empty tensor {self!r}: there is no element to choose")
    for dim in canonical_dims(dims, self.ndim):
        if self.shape[dim] == 0:
            raise IndexOutOfRange(f"{name}: dimension {dim} of {self!r} is empty; there is no element to choose")


def extremal(self: Meta, dim: Dims, keepdim: bool) -> Inference:
    """Rule of reductions that choose or compare; the half types are compared as float32."""
    return reduction(self, dim, keepdim, compute=self.dtype)


def chosen(self: Meta, dim: int, keepdim: bool) -> Inference:
    """Rule of (values, indices) along one dimension."""
    return several(extremal(self, dim, keepdim), reduction(self, dim, keepdim, dtype=int64))


# Extremes


_AT_INDICES: Final = "gather_backward(reshape(grad) if not keepdim and self.ndim > 0 else grad)"


def _of_quantile(rank: str) -> dict[str, str]:
    """The gradients of a quantile, from its rank among the elements."""
    rows = (
        "(g := reshape(grad) if is_number(q) or q.ndim == 0 else reshape(movedim(grad)) if dim is None"
        " else reshape.ReshapeAliasBackward0(movedim(grad)))"
    )
    between = f"gather_backward({rows} * (c - (f := (r := expand({rank})) - floor(r)))) + gather_backward(g * f)"
    halves = "(h := gather_backward(g * c)) + h"
    by_place = (
        f"{halves} if interpolation == 'midpoint' else gather_backward(g) if interpolation != 'linear'"
        f" else {halves} if is_number(q) else {between}"
    )
    slope = "g * (gather({0}) - gather({0})) * c"
    return {
        "self": f"reshape((s := {by_place})) if dim is None or self.ndim == 0 else movedim(s)",
        "q": (
            f"c if interpolation != 'linear' else reshape(sum_to_size.AliasBackward0({slope.format('reshape(self)')}))"
            f" if dim is None else reshape(sum_to_size.ViewBackward0({slope.format('movedim(self)')}))"
        ),
    }


@op(grad_fn="MaxBackward1", out=Out.WHOLE)
@gradients("c * (grad / c)", saves="self result")
def max(self: Tensor) -> Inference:
    """The largest element; NaN if there is one. Its gradient is shared equally among equals."""
    refuse_complex("max", self)
    need_elements("max", self, None)
    return extremal(self, None, False)


@op(grad_fn="MinBackward1", out=Out.WHOLE)
@gradients("c * (grad / c)", saves="self result")
def min(self: Tensor) -> Inference:
    """The smallest element; NaN if there is one. Its gradient is shared equally among equals."""
    refuse_complex("min", self)
    need_elements("min", self, None)
    return extremal(self, None, False)


@op(grad_fn="MaxBackward0", results=2, along=True, out=Out.EXACT)
@gradients(_AT_INDICES, saves="result1")
def max_dim(self: Tensor, dim: int, keepdim: bool = False) -> Inference:
    """(largest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
    refuse_complex("max", self, DTypeError)
    need_elements("max", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="MinBackward0", results=2, along=True, out=Out.EXACT)
@gradients(_AT_INDICES, saves="result1")
def min_dim(self: Tensor, dim: int, keepdim: bool = False) -> Inference:
    """(smallest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
    refuse_complex("min", self, DTypeError)
    need_elements("min", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="AmaxBackward0", along=True, out=Out.EXACT)
@gradients("restored(grad) * c / c", saves="self result")
def amax(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Largest elements over one or several dimensions; gradients are shared equally among equals."""
    refuse_complex("amax", self)
    need_elements("amax", self, dim)
    return extremal(self, dim, keepdim)


@op(grad_fn="AminBackward0", along=True, out=Out.EXACT)
@gradients("restored(grad) * c / c", saves="self result")
def amin(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Smallest elements over one or several dimensions; gradients are shared equally among equals."""
    refuse_complex("amin", self)
    need_elements("amin", self, dim)
    return extremal(self, dim, keepdim)


@op(grad_fn="AminmaxBackward0", results=2, keyword_only=("dim", "keepdim"), along=True, out=Out.EXACT)
@gradients("restored(grad) * c / c + restored(grad1) * c / c", saves="self result0 result1")
def aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Inference:
    """(smallest, largest) of all elements or along one dimension."""
    refuse_complex("aminmax", self)
    need_elements("aminmax", self, dim)
    one = extremal(self, dim, keepdim)
    return several(one, one)


def _position(name: str, self: Meta, dim: int | None, keepdim: bool) -> Inference:
    if self.dtype.is_complex or self.dtype.category == BOOLEAN:
        raise DTypeError(f"{name} is not defined for {self.dtype.name}")
    if dim is None and 0 in self.shape:
        raise IndexOutOfRange(f"{name} of the empty tensor {self!r}: there is no element to choose")
    need_elements(name, self, dim)
    return reduction(self, dim, keepdim, dtype=int64, compute=self.dtype)


@op(along=True, out=Out.EXACT)
def argmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Inference:
    """Index of the first largest element: of the flattened tensor, or along ``dim``. NaN counts as largest."""
    return _position("argmax", self, dim, keepdim)


@op(along=True, out=Out.EXACT)
def argmin(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Inference:
    """Index of the first smallest element: of the flattened tensor, or along ``dim``. NaN counts as smallest."""
    return _position("argmin", self, dim, keepdim)


# Order statistics


def _ordered(name: str, self: Meta) -> None:
    refuse_complex(name, self)
    if self.dtype.category == BOOLEAN:
        raise Unsupported(f"{name} is not defined for bools")


@op(grad_fn="MedianBackward0", cost=SORTING)
@gradients("c * (grad / c)", saves="self result")
def median(self: Tensor) -> Inference:
    """The lower of the middle elements; NaN if there is one or the tensor is empty. Equals share the gradient."""
    _ordered("median", self)
    return extremal(self, None, False)


@op(grad_fn="NanmedianBackward0", cost=SORTING)
@gradients("c * (grad / c)", saves="self result")
def nanmedian(self: Tensor) -> Inference:
    """The median of the elements that are not NaN. Equals share the gradient."""
    _ordered("nanmedian", self)
    return extremal(self, None, False)


@op(grad_fn="MedianBackward1", results=2, along=True, cost=SORTING, out=Out.EXACT | Out.APART)
@gradients(_AT_INDICES, saves="result1")
def median_dim(self: Tensor, dim: int = -1, keepdim: bool = False) -> Inference:
    """(lower medians along ``dim``, their indices). The gradient goes to the element of the index."""
    _ordered("median", self)
    need_elements("median", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="NanmedianBackward1", results=2, along=True, cost=SORTING, out=Out.EXACT | Out.APART)
@gradients(_AT_INDICES, saves="result1")
def nanmedian_dim(self: Tensor, dim: int = -1, keepdim: bool = False) -> Inference:
    """(medians along ``dim`` of what is not NaN, their indices)."""
    _ordered("nanmedian", self)
    need_elements("nanmedian", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="ModeBackward0", results=2, along=True, cost=SORTING, out=Out.EXACT)
@gradients(_AT_INDICES, saves="result1")
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Inference:
    """(most frequent values along ``dim``, the index of each one's last occurrence); the smallest of equally
    frequent ones."""
    refuse_complex("mode", self)
    need_elements("mode", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="KthvalueBackward0", results=2, along=True, cost=SORTING, out=Out.EXACT | Out.APART)
@gradients(_AT_INDICES, saves="result1")
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Inference:
    """(the ``k``-th smallest elements along ``dim``, counted from 1, their indices). NaN counts as largest."""
    _ordered("kthvalue", self)
    at = canonical_dim(dim, self.ndim)
    extent = self.shape[at] if self.shape else 1
    if extent == 0 and self.ndim > 1:
        raise IndexOutOfRange(f"kthvalue: dimension {at} of {self!r} has no elements to choose from")
    if extent != -1 and not 1 <= k <= extent:
        raise ArgumentError(f"kthvalue: k is {k}; it must be from 1 to the extent of dimension {at}, {extent}")
    return chosen(self, dim, keepdim)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@op(
    grad_fn="SqueezeBackward4", keyword_only=("interpolation",), cost=SORTING, out=Out.EXACT | Out.ROW_MAJOR,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(**_of_quantile("where(c, reshape(q) * c)"), saves="self q")
def quantile(
    self: Tensor, q: Tensor | Float, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Inference:
    """Quantiles of all elements or along ``dim``, for one ``q`` in [0, 1] or a vector of them, which then comes as
    the first dimension of the result. NaN makes its quantile NaN.

    ``interpolation`` says what lies between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``
    or ``"nearest"``.
    """
    return _quantile("quantile", self, q, dim, keepdim, interpolation)


@op(
    grad_fn="SqueezeBackward4", keyword_only=("interpolation",), cost=SORTING, out=Out.EXACT | Out.ROW_MAJOR,
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients(**_of_quantile("reshape(q) * c"), saves="self q")
def nanquantile(
    self: Tensor, q: Tensor | Float, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Inference:
    """Like :func:`quantile`, leaving NaN out."""
    return _quantile("nanquantile", self, q, dim, keepdim, interpolation)


def _quantile(
    name: str, self: Meta, q: Tensor | Float, dim: int | None, keepdim: bool, interpolation: str
) -> Inference:
    if self.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"{name} needs float32 or float64, got {self.dtype.name}")
    if self.numel == 0:
        raise ArgumentError(f"{name} of the empty tensor {self!r}")
    if interpolation not in INTERPOLATIONS:
        raise ArgumentError(f"{name}: interpolation must be one of {', '.join(INTERPOLATIONS)}, not {interpolation!r}")
    lead: tuple[int, ...] = ()
    if isinstance(q, Meta):
        if q.ndim > 1:
            raise ArgumentError(f"{name}: q is a number or a vector, got shape {list(q.shape)}")
        if q.dtype is not self.dtype:
            raise DTypeError(f"{name}: q is {q.dtype.name}, the tensor {self.dtype.name}; the dtypes must be equal")
        lead = q.shape
    rest = reduction(self, dim, keepdim).outs[0].shape
    shape = (*lead, *rest)
    stride = None
    if lead and rest:
        # The quantiles are found along a last dimension that is then moved to the front.
        inner = new((*rest, *lead), self.dtype, self.device).outs[0].stride
        stride = (1, *inner[:-1])
    found = new(shape, self.dtype, self.device, stride=stride)
    return found if isinstance(q, Meta) else found.checking(_check_quantile)


def _check_quantile(self: object, q: float, *rest: object) -> None:
    if not 0 <= q <= 1:
        raise ArgumentError(f"quantile: q must be in [0, 1], not {q}")
