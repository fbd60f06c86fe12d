"""Sequences of different lengths in one tensor: packed, and padded. Each is the other's derivative."""

from __future__ import annotations

from ..autograd.functional import F
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.sequences import rows_there
from ..runtime.arrays import Array, Namespace


@kernel("pack_padded", half=True)
def pack_padded(xp: Namespace, x: Array, batch_sizes: tuple[int, ...]) -> Array:
    return x[: len(batch_sizes)][rows_there(xp, batch_sizes)]


derivative("pack_padded", self=lambda s, g: F.pad_packed(g, s.batch_sizes, 0, s.meta("self").shape[0]))


@kernel("pad_packed", half=True)
def pad_packed(xp: Namespace, x: Array, batch_sizes: tuple[int, ...], padding_value: int, length: int | None) -> Array:
    found = xp.full((length or len(batch_sizes), batch_sizes[0], *x.shape[1:]), padding_value, x.dtype)
    found[: len(batch_sizes)][rows_there(xp, batch_sizes)] = x
    return found


derivative("pad_packed", self=lambda s, g: F.pack_padded(g, s.batch_sizes))


def _place(length: int, longest: int, side: str) -> slice:
    return slice(0, length) if side == "right" else slice(longest - length, longest)


@kernel("pad_sequence", half=True)
def pad_sequence(
    xp: Namespace, sequences: list[Array], batch_first: bool, padding_value: float, padding_side: str
) -> Array:
    longest = max(len(s) for s in sequences)
    found = xp.full((len(sequences), longest, *sequences[0].shape[1:]), padding_value, sequences[0].dtype)
    for row, sequence in zip(found, sequences, strict=True):
        row[_place(len(sequence), longest, padding_side)] = sequence
    return found if batch_first else found.swapaxes(0, 1)


@joint_derivative("pad_sequence")
def _(s: Saved, g: Tensor) -> list[Tensor | None]:
    dim = 0 if s.batch_first else 1
    longest, found = g.shape[1 - dim], []
    for k, (described, needed) in enumerate(zip(s.meta("sequences"), s.needs_each("sequences"), strict=True)):
        length = described.shape[0]
        start = _place(length, longest, s.padding_side).start
        found.append(F.narrow(F.select(g, dim, k), 0, start, length) if needed else None)
    return found
