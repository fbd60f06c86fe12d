"""Distances between all pairs of points, and lengths that are cut."""

from __future__ import annotations

from math import prod
from typing import Final

from ..autocast import FLOAT32, GPU_FLOAT32
from ..costs import Cost, last
from ..dtypes import FLOATING
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..meta import UNKNOWN, Inference, Meta, Shape, new
from ..shapes import broadcast, canonical_dim, common_device, like
from ..table import Float, Out, Real, Tensor, gradients, op
from .matrix import fits, need_same_dtype

BLOCK: Final = 1 << 20
"""Elements of differences that are held at once, if one point's are not more."""

MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _need_points(name: str, *operands: Meta) -> None:
    dtype = need_same_dtype(name, *operands)
    if dtype.category != FLOATING:
        raise DTypeError(f"{name} needs real floating point tensors, got {dtype.name}")


@op(grad_fn="CdistBackward0", exposed=("function",), cost=Cost(lambda c: c.made * last(c.x1)), autocast=FLOAT32)
@gradients(
    x1=(
        "c if p == 0 else x1 * unsqueeze(sum_dim((w := where(grad / (a := where(result, c)), c)))) - w @ x2"
        " if p == 2 else sum_dim((g := unsqueeze(grad)) * (s := sign((d := unsqueeze(x1) - unsqueeze(x2)))))"
        " if p == 1 else sum_dim(g * where(s, c)) if p == inf else sum_dim(unsqueeze(where(grad / a ** c, c))"
        " * s * where(where(abs(d), c) ** c, c))"
    ),
    x2=(
        "c if p == 0 else x2 * unsqueeze(sum_dim((v := where((t := transpose(grad))"
        " / where(transpose(result), c), c)))) - v @ x1 if p == 2 else sum_dim((h := unsqueeze(t))"
        " * (r := sign(unsqueeze(x2) - unsqueeze(x1)))) if p == 1 else sum_dim(h * where(r, c)) if p == inf"
        " else sum_dim(grad, result, x1, x2)"
    ),
    saves="x1 x2 result",
    broadcasts=True,
)
def cdist(x1: Tensor, x2: Tensor, p: Float = 2.0, compute_mode: str | None = None) -> Inference:
    """The distances in the norm of order ``p`` between each row of ``x1``, ``(..., n, d)``, and each of ``x2``,
    ``(..., m, d)``: ``(..., n, m)``. Batches broadcast. ``compute_mode`` says whether Euclidean distances may come from
    one matrix product, which is faster and less exact: by default from more than 25 points on."""
    for label, operand in (("x1", x1), ("x2", x2)):
        if operand.ndim < 2:
            raise ShapeError(f"cdist: {label} needs at least 2 dimensions; its shape is {list(operand.shape)}")
    if not fits(x1.shape[-1], x2.shape[-1]):
        raise ShapeError(f"cdist: points of {x1.shape[-1]} and {x2.shape[-1]} coordinates")
    _need_points("cdist", x1, x2)
    if compute_mode is not None and compute_mode not in MODES:
        raise ArgumentValueError(f"cdist: compute_mode must be one of {', '.join(MODES)}, not {compute_mode!r}")
    shape = (*broadcast(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-2])
    found = new(shape, x1.dtype, common_device(x1, x2))
    found.scratch = _differences(shape, x1)
    return found.checking(_check_cdist)


def _check_cdist(x1: object, x2: object, p: float, compute_mode: object) -> None:
    _check_order("cdist", p)


def _check_order(name: str, p: float) -> None:
    if not p >= 0:
        raise ArgumentError(f"{name}: p must not be negative, but is {p}")


def _differences(shape: Shape, points: Meta) -> int:
    """Bytes of the differences that are held at once, of what is made of them, and of the results put together."""
    pairs = max(prod(shape), 0)
    row = pairs // max(shape[-2], 1) * points.shape[-1]
    return (3 * min(pairs * points.shape[-1], max(BLOCK, row)) + 2 * pairs) * points.dtype.itemsize


@op(
    grad_fn="PdistBackward0", exposed=("function", "nn.functional"), cost=Cost(lambda c: c.made * last(c.self)),
    autocast=GPU_FLOAT32,
)  # fmt: skip
@gradients(
    "self * unsqueeze(sum_dim((v := where((t := (s := reshape(index_add(c, grad))) + transpose(s))"
    " / where((u := reshape(index_add(c, result))) + transpose(u), c), c)))) - matmul(v, self)"
    " if p == 2 else c if p == 0 else sum_dim((w := unsqueeze(t)) * (y := sign((x := unsqueeze(self))"
    " - x))) if p == 1 else sum_dim(w * where(y, c)) if p == inf else sum_dim(grad, result, self)"
)
def pdist(self: Tensor, p: Float = 2.0) -> Inference:
    """The distances in the norm of order ``p`` between all pairs of the n rows: ``n * (n - 1) / 2`` of them, row by row
    of the upper triangle of :func:`cdist`'s matrix."""
    if self.ndim != 2:
        raise ShapeError(f"pdist needs a matrix of points, got shape {list(self.shape)}")
    _need_points("pdist", self)
    n = self.shape[0]
    found = new((UNKNOWN if n == UNKNOWN else n * (n - 1) // 2,), self.dtype, self.device)
    if self.known:
        # All pairs are computed, and those of the triangle are looked up among them.
        found.scratch = _differences((n, n), self) + 9 * n * n
    return found.checking(_check_pdist)


def _check_pdist(self: object, p: float) -> None:
    _check_order("pdist", p)


@op(grad_fn="RenormBackward0", inplace=True, out=Out.EXACT, autocast=GPU_FLOAT32)
@gradients(
    "grad * where(reciprocal((s := norm(self) + c)) * c, c) + sgn(self) * where(sum_dim(grad * self) * c"
    " / square(s), c) if not is_complex(self) and p == 1 else grad + self"
)
def renorm(self: Tensor, p: Real, dim: int, maxnorm: Real) -> Inference:
    """Slices along ``dim`` whose norm of order ``p`` is above ``maxnorm``, scaled down to that norm; others as they
    are. ``p`` is positive, ``maxnorm`` not negative."""
    if self.ndim < 2:
        raise ShapeError(f"renorm needs at least 2 dimensions, got shape {list(self.shape)}")
    canonical_dim(dim, self.ndim)
    if self.dtype.category < FLOATING:
        raise DTypeError(f"renorm needs a floating point or complex tensor, got {self.dtype.name}")
    return new(self.shape, self.dtype, self.device).checking(_check_renorm)


def _check_renorm(self: object, p: float, dim: object, maxnorm: float) -> None:
    if not p > 0:
        raise ArgumentError(f"renorm: p must be positive, but is {p}")
    if not maxnorm >= 0:
        raise ArgumentError(f"renorm: maxnorm must not be negative, but is {maxnorm}")


@op(grad_fn="AliasBackward0", exposed=(), elementwise=True, total=False)
@gradients("grad")
def nonnegative(self: Tensor) -> Inference:
    """A copy of weights, none of which is negative: RuntimeError otherwise, when the result is read."""
    return like(self)
