"""Scans: reductions of every prefix of a dimension."""

from __future__ import annotations

from ..autocast import GPU_FLOAT32
from ..dtypes import FLOATING, DType, bool_, int64
from ..errors import ShapeError, Unsupported
from ..meta import Inference, Meta, new, several
from ..promotion import Promote, promote
from ..shapes import canonical_dim
from ..table import Out, Scalar, Tensor, gradients, op
from .reduction import refuse_complex, summed_dtype


def scanned(self: Meta, dim: int, dtype: DType | None = None, compute: DType | None = None) -> Inference:
    """Rule of running reductions: the operand's shape, row-major."""
    canonical_dim(dim, self.ndim)
    return new(self.shape, dtype or self.dtype, self.device, compute=compute)


def _running(name: str, self: Meta, dim: int, dtype: DType | None) -> Inference:
    result, compute = summed_dtype(self, dtype)
    if result is bool_ and self.ndim and 0 not in self.shape:
        raise Unsupported(f"{name} does not compute in bools: its results are integers, as int64 holds them")
    return scanned(self, dim, result, compute)


@op(
    grad_fn="CumsumBackward0", inplace=True, keyword_only=("dtype",), linear=True, along=True, out=Out.COMPUTED,
    autocast=GPU_FLOAT32,
)  # fmt: skip
@gradients("flip(cumsum(flip(grad))) if self.ndim > 0 else grad")
def cumsum(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Running sums along ``dim``. Bools and integers are summed in int64; ``dtype`` converts first."""
    return _running("cumsum", self, dim, dtype)


@op(
    grad_fn="CumprodBackward0", inplace=True, keyword_only=("dtype",), along=True, out=Out.COMPUTED,
    autocast=GPU_FLOAT32,
)  # fmt: skip
@gradients("grad if self.ndim == 0 else conj(shift(result)) * linear_recurrence(conj(shift(self)), grad)")
def cumprod(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Running products along ``dim``. Bools and integers are multiplied in int64; ``dtype`` converts first."""
    return _running("cumprod", self, dim, dtype)


@op(grad_fn="LogcumsumexpBackward0", along=True, out=Out.EXACT | Out.WHOLE)
@gradients("grad if self.ndim == 0 else exp(self - result) * linear_recurrence(exp(result - shift(result)), grad)")
def logcumsumexp(self: Tensor, dim: int) -> Inference:
    """Logarithm of the running sums of exponentials along ``dim``, without overflow."""
    if self.dtype.category < FLOATING:
        raise Unsupported(f"logcumsumexp is not defined for {self.dtype.name}")
    return scanned(self, dim, compute=self.dtype)


def _running_extreme(name: str, self: Meta, dim: int) -> Inference:
    refuse_complex(name, self)
    return several(scanned(self, dim, compute=self.dtype), scanned(self, dim, int64))


@op(grad_fn="CummaxBackward0", results=2, along=True, out=Out.EXACT)
@gradients("gather_backward(grad)", saves="result1")
def cummax(self: Tensor, dim: int) -> Inference:
    """(running maxima along ``dim``, the index of the latest element that equals each)."""
    return _running_extreme("cummax", self, dim)


@op(grad_fn="CumminBackward0", results=2, along=True, out=Out.EXACT)
@gradients("gather_backward(grad)", saves="result1")
def cummin(self: Tensor, dim: int) -> Inference:
    """(running minima along ``dim``, the index of the latest element that equals each)."""
    return _running_extreme("cummin", self, dim)


# Primitives that derivatives of running products are written in


@op(grad_fn="ShiftBackward0", internal=True, along=True)
@gradients("shift(grad)")
def shift(self: Tensor, dim: int, by: int, fill: Scalar = 0) -> Inference:
    """Elements moved ``by`` places along ``dim``; what falls off is lost and ``fill`` takes the empty places."""
    canonical_dim(dim, self.ndim)
    return new(self.shape, self.dtype, self.device)


@op(grad_fn="LinearRecurrenceBackward0", internal=True, along=True)
@gradients(
    factor="(s := linear_recurrence(conj(shift(factor)), grad)) * conj(shift(result))", term="s", saves="factor result"
)
def linear_recurrence(factor: Tensor, term: Tensor, dim: int, reverse: bool = False) -> Inference:
    """The solution of ``s[i] = term[i] + factor[i] * s[i - 1]`` along ``dim`` (``s[i + 1]`` in reverse).

    The derivatives of running products are such recurrences: with them nothing is ever divided by an element.
    """
    if factor.shape != term.shape:
        raise ShapeError(f"linear_recurrence: shapes {list(factor.shape)} and {list(term.shape)} differ")
    _, result = promote(Promote.DEFAULT, [(factor.dtype, 1), (term.dtype, 1)])
    return scanned(term, dim, result, result)
