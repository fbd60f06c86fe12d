"""Distances between all pairs of points, and lengths that are cut."""

from __future__ import annotations

from math import inf

import numpy as np

from gradwire_protocol.errors import KernelError
from gradwire_protocol.ops.distances import BLOCK

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, Namespace, native
from .matrix import transposed
from .reduction import gradient_of_norm, norm, order_in

_FEW = 25  # up to so many points, Euclidean distances are computed from differences, which is exact near 0


@kernel("cdist")
def cdist(xp: Namespace, x: Array, y: Array, p: float, compute_mode: str | None) -> Array:
    p = order_in(p, x.dtype)
    n, m = x.shape[-2], y.shape[-2]
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if x.shape[-1] == 0 or 0 in (n, m, *batch):
        return xp.zeros((*batch, n, m), x.dtype)
    many = n > _FEW or m > _FEW
    by_product = compute_mode == "use_mm_for_euclid_dist" or (
        many and compute_mode in (None, "use_mm_for_euclid_dist_if_necessary")
    )
    if p == 2 and by_product:
        return _euclidean(xp, x, y)
    per_row = max(1, int(np.prod(batch)) * m * x.shape[-1])
    step = max(1, BLOCK // per_row)
    parts = [_norms(xp, x[..., i : i + step, None, :] - y[..., None, :, :], p) for i in range(0, n, step)]
    return parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=-2)


def _euclidean(xp: Namespace, x: Array, y: Array) -> Array:
    """From ``|x - y|^2 = |x|^2 + |y|^2 - 2 x y``."""
    squares = (x * x).sum(axis=-1)[..., :, None] + (y * y).sum(axis=-1)[..., None, :]
    squares = squares - 2 * xp.matmul(x, y.swapaxes(-1, -2))
    return xp.sqrt(xp.maximum(squares, 0))


def _norms(xp: Namespace, differences: Array, p: float) -> Array:
    """The norm of order p along the last dimension."""
    if p == 0:
        return (differences != 0).sum(axis=-1).astype(differences.dtype)
    sizes = xp.abs(differences)
    if p == 1:
        return sizes.sum(axis=-1)
    if p == 2:
        return xp.sqrt((sizes * sizes).sum(axis=-1))
    if p == inf:
        return sizes.max(axis=-1)
    return xp.power(xp.power(sizes, p).sum(axis=-1), 1 / p)


@kernel("pdist")
def pdist(xp: Namespace, x: Array, p: float) -> Array:
    n = x.shape[0]
    if n < 2 or x.shape[1] == 0:
        return xp.zeros((n * (n - 1) // 2,), x.dtype)
    above = xp.asarray(np.flatnonzero(np.triu(np.ones((n, n), bool), 1)))
    return cdist(xp, x, x, p, "donot_use_mm_for_euclid_dist").reshape(-1)[above]


def _distance_gradient(g: Tensor, x: Tensor, y: Tensor, distances: Tensor, p: float) -> Tensor | None:
    """The gradient by ``x`` of the distances between its rows and those of ``y``, where ``g`` is the gradient by them.
    Between equal points it is 0."""
    if p == 0:
        return F.zeros_like(x)
    p = order_in(p, native(x.dtype))
    apart = distances != 0
    safe = F.where(apart, distances, 1)
    if p == 2:
        weights = F.where(apart, g / safe, 0)
        return x * F.unsqueeze(F.sum(weights, -1), -1) - weights @ y
    differences = F.unsqueeze(x, -2) - F.unsqueeze(y, -3)
    signs = F.sign(differences)
    if p == 1:
        return F.sum(F.unsqueeze(g, -1) * signs, -2)
    if p == inf:
        largest = F.abs(differences) == F.unsqueeze(distances, -1)
        return F.sum(F.unsqueeze(g, -1) * F.where(largest, signs, 0), -2)
    sizes = F.abs(differences)
    moved = sizes != 0
    powers = F.where(moved, F.pow(F.where(moved, sizes, 1), p - 1), 0)
    weights = F.where(apart, g / F.pow(safe, p - 1), 0)
    return F.sum(F.unsqueeze(weights, -1) * signs * powers, -2)


@joint_derivative("cdist", saves="x1 x2 result")
def cdist_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y, distances = s.x1, s.x2, s.result
    by_x = _distance_gradient(g, x, y, distances, s.p) if s.needs("x1") else None
    if not s.needs("x2"):
        return by_x, None
    return by_x, _distance_gradient(transposed(g), y, x, transposed(distances), s.p)


@joint_derivative("pdist", saves="self result")
def pdist_gradient(s: Saved, g: Tensor) -> Tensor | None:
    x = s.self
    n = x.shape[0]
    if n < 2:
        return F.zeros_like(x)
    above = x.engine.from_numpy(np.flatnonzero(np.triu(np.ones((n, n), bool), 1)), device=x.device)

    def whole(pairs: Tensor) -> Tensor:
        flat = x.engine.call("zeros", (n * n,), dtype=pairs.dtype, device=pairs.device)
        half = F.reshape(F.index_add(flat, 0, above, pairs), (n, n))
        return half + transposed(half)

    return _distance_gradient(whole(g), x, x, whole(s.result), s.p)


_MARGIN = 1e-7  # added to lengths that divide, as PyTorch does


@kernel("renorm")
def renorm(xp: Namespace, x: Array, p: float, dim: int, maxnorm: float) -> Array:
    lengths = norm(xp, x, p, _others(x.ndim, dim), True, None)
    lengths = lengths.reshape([n if i == dim % x.ndim else 1 for i, n in enumerate(x.shape)])
    return x * xp.where(lengths > maxnorm, maxnorm / (lengths + _MARGIN), 1).astype(lengths.dtype)


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(i for i in range(ndim) if i != dim % ndim)


def _renorm(s: Saved, g: Tensor) -> Tensor:
    x, dims, most = s.self, _others(s.meta("self").ndim, s.dim), s.maxnorm
    lengths = F.norm(x, s.p, dims, True)
    longer = lengths > most
    scale = F.where(longer, most / (lengths + _MARGIN), 1)
    along = g * conj(x)
    along = F.sum(F.real(along) if along.dtype.is_complex else along, dims, True)
    by_length = F.where(longer, along * -most / F.square(lengths + _MARGIN), 0)
    return g * scale + gradient_of_norm(x, lengths, by_length, s.p, dims)


derivative("renorm", self=("self", _renorm))


@kernel("nonnegative")
def nonnegative(xp: Namespace, x: Array) -> Array:
    if (x < 0).any():
        raise KernelError("a weight is negative")
    return x


derivative("nonnegative", self=lambda s, g: g)
