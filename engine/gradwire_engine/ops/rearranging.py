"""Kernels and derivatives of rearrangements that copy: flips, rolls, triangles, diagonals."""

from __future__ import annotations

from typing import Any

from ..autograd.functional import F
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import total
from ..runtime.arrays import Array, Namespace
from .adjoints import Flat


@kernel("flip", half=True)
def flip(xp: Namespace, x: Array, dims: tuple[int, ...]) -> Array:
    return xp.flip(x, dims) if x.ndim else x.copy()


derivative("flip", self=lambda s, g: F.flip(g, s.dims))


@kernel("roll", half=True)
def roll(xp: Namespace, x: Array, shifts: int | tuple[int, ...], dims: int | tuple[int, ...] | None) -> Array:
    if x.ndim == 0:
        return x.copy()
    return xp.roll(x, shifts, None if dims == () else dims)


def _backwards(shifts: int | tuple[int, ...]) -> Any:
    return -shifts if isinstance(shifts, int) else tuple(-n for n in shifts)


derivative("roll", self=lambda s, g: F.roll(g, _backwards(s.shifts), s.dims))


@kernel("rot90", half=True)
def rot90(xp: Namespace, x: Array, k: int, dims: tuple[int, ...]) -> Array:
    return xp.rot90(x, k, dims)


derivative("rot90", self=lambda s, g: F.rot90(g, -s.k, s.dims))


@kernel("tril", half=True)
def tril(xp: Namespace, x: Array, diagonal: int) -> Array:
    return xp.tril(x, diagonal)


@kernel("triu", half=True)
def triu(xp: Namespace, x: Array, diagonal: int) -> Array:
    return xp.triu(x, diagonal)


derivative("tril", self=lambda s, g: F.tril(g, s.diagonal))
derivative("triu", self=lambda s, g: F.triu(g, s.diagonal))


@kernel("diag_embed", half=True)
def diag_embed(xp: Namespace, x: Array, offset: int, dim1: int, dim2: int) -> Array:
    n = x.shape[-1] + abs(offset)
    made = xp.zeros((*x.shape[:-1], n, n), x.dtype)
    row = xp.arange(x.shape[-1])
    made[..., row + max(0, -offset), row + max(0, offset)] = x
    return xp.moveaxis(made, (-2, -1), (dim1, dim2))


derivative("diag_embed", self=lambda s, g: F.diagonal(g, s.offset, s.dim1, s.dim2))


@kernel("diag", half=True)
def diag(xp: Namespace, x: Array, diagonal: int) -> Array:
    return diag_embed(xp, x, diagonal, -2, -1) if x.ndim == 1 else xp.diagonal(x, diagonal).copy()


def _diag_gradient(s: Saved, g: Tensor) -> Tensor:
    self = s.meta("self")
    if self.ndim == 1:
        result: Tensor = F.diagonal(g, s.diagonal)
    else:
        result = F.diagonal_backward(g, self.shape, s.diagonal, 0, 1)
    return result


derivative("diag", self=_diag_gradient)


@kernel("sum_to_size")
def sum_to_size(xp: Namespace, x: Array, size: tuple[int, ...]) -> Array:
    lead = x.ndim - len(size)
    axes = (*range(lead), *(lead + i for i, n in enumerate(size) if n != x.shape[lead + i]))
    return total(xp, x, axes)


derivative("sum_to_size", self=lambda s, g: F.expand(g, s.meta("self").shape))


@kernel("as_strided_scatter", half=True)
def as_strided_scatter(
    xp: Namespace, x: Array, src: Array, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int
) -> Array:
    flat = Flat(xp, x.dtype, (x.shape, tuple(s // x.itemsize for s in x.strides), 0), (size, stride, storage_offset))
    whole = flat.places(0)
    flat.memory[whole] = x
    flat.memory[flat.places(1)] = src
    return flat.memory[whole]


def _scattered_gradient(s: Saved, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    self = s.meta("self")
    part = F.restride(g, self.stride, 0, s.size, s.stride, s.storage_offset)
    kept = None
    if s.needs("self"):
        kept = g - F.restride(part, s.stride, s.storage_offset, self.shape, self.stride, 0)
    return kept, part


joint_derivative("as_strided_scatter")(_scattered_gradient)
