"""Kernels and derivatives of putting tensors together."""

from __future__ import annotations

from itertools import accumulate

from gradwire_protocol.errors import KernelError

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel, measured
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import at_least_1d
from ..runtime.arrays import Array, Namespace
from .indexing import zeros_for


@kernel("cat", half=True)
def cat(xp: Namespace, tensors: list[Array], dim: int) -> Array:
    real = [t for t in tensors if t.shape != (0,)]
    return xp.concatenate(real, axis=dim) if real else tensors[0].copy()  # any dim fits empty vectors


def _cat_gradient(s: Saved, g: Tensor) -> list[Tensor]:
    metas = s.meta("tensors")
    ends = list(accumulate(0 if m.shape == (0,) else m.shape[s.dim] for m in metas))
    return [
        zeros_for(g, (0,)) if m.shape == (0,) else F.slice(g, s.dim, start, end)
        for m, start, end in zip(metas, [0, *ends], ends)
    ]


derivative("cat", tensors=_cat_gradient)


@kernel("stack", half=True)
def stack(xp: Namespace, tensors: list[Array], dim: int) -> Array:
    return xp.stack(tensors, axis=dim)


derivative("stack", tensors=lambda s, g: [F.select(g, s.dim, i) for i in range(len(s.meta("tensors")))])


@kernel("repeat_interleave", half=True)
def repeat_interleave(xp: Namespace, x: Array, repeats: int, dim: int | None) -> Array:
    return xp.repeat(at_least_1d(x), repeats, axis=dim)


def _interleave_gradient(s: Saved, g: Tensor) -> Tensor:
    shape = s.meta("self").shape
    if s.dim is None or not shape:
        shape, at = (s.meta("self").numel,), 0
    else:
        at = s.dim % len(shape)
    copies = F.reshape(g, (*shape[: at + 1], s.repeats, *shape[at + 1 :]))
    return F.reshape(F.sum(copies, at + 1), s.meta("self").shape)


derivative("repeat_interleave", self=_interleave_gradient)


@measured("repeated_positions")
def _repeats(xp: Namespace, repeats: Array) -> tuple[int, int]:
    # In floats: a sum of integers may wrap around to a small one.
    return 16 * int(min(float(xp.maximum(repeats, 0).sum(dtype=xp.float64)), 1e18)) if repeats.size else 0, 0


@kernel("repeated_positions")
def repeated_positions(xp: Namespace, repeats: Array) -> Array:
    if repeats.size and int(repeats.min()) < 0:
        raise KernelError("repeat_interleave: repeats has a negative number")
    ends = xp.cumsum(repeats)
    total = int(ends[-1]) if ends.size else 0
    return xp.searchsorted(ends, xp.arange(total), side="right")
