"""Optimizer steps over lists of tensors: eight of them a launch, whatever their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...runtime.arrays import Namespace
from ...runtime.cuda.launching import FLOATS, element_of, kernel, strided
from ...runtime.cuda.registry import fused

AT_ONCE: Final = 8
MAXIMIZE: Final = 1
NESTEROV: Final = 2
DECOUPLED: Final = 4
AMSGRAD: Final = 8

Row = tuple[int, tuple[Any, ...]]
"""The position of a parameter, and its arrays: itself, its gradient, its states (None for one that is not kept)."""


def _alike(arrays: Sequence[Any]) -> bool:
    """Whether the kernels take these arrays together."""
    first = arrays[0]
    return element_of(first.dtype) in FLOATS and all(
        a is None or (a.dtype == first.dtype and a.shape == first.shape and a.strides == first.strides)
        for a in arrays
    ) and bool(first.flags.c_contiguous or first.flags.f_contiguous)  # fmt: skip


def _launch(xp: Namespace, name: str, rows: Sequence[Row], numbers: Any, flags: int, first: int | None) -> None:
    """One launch for up to eight parameters of one dtype. ``first`` has a bit for each, or is not asked for."""
    columns: list[Any] = []
    for column in zip(*[arrays for _, arrays in rows], strict=True):
        columns += [*column, *[None] * (AT_ONCE - len(rows))]
    sizes = [arrays[0].size for _, arrays in rows]
    columns += [np.int64(n) for n in (*sizes, *[0] * (AT_ONCE - len(rows)))]
    grid, block = strided(max(sizes), each=4)
    tail = () if first is None else (np.int32(first),)
    kernel(xp, name, "optimizer", element_of(rows[0][1][0].dtype))(
        (*grid, len(rows)), block, (*columns, numbers, np.int32(flags), *tail)
    )


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one dtype together, at most eight at a time."""
    by_dtype: dict[str, list[Row]] = {}
    for row in rows:
        by_dtype.setdefault(element_of(row[1][0].dtype), []).append(row)
    return [found[i : i + AT_ONCE] for found in by_dtype.values() for i in range(0, len(found), AT_ONCE)]


@fused("sgd_step", half=True)
def sgd_step(
    xp: Namespace, rows: Sequence[Row], lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool, first: Sequence[bool],
) -> Any:  # fmt: skip
    """Change all parameters; ``NotImplemented``, with nothing changed, where some cannot be."""
    rows = [row for row in rows if row[1][0].size]
    if not all(_alike(arrays) for _, arrays in rows):
        return NotImplemented
    flags = (MAXIMIZE if maximize else 0) | (NESTEROV if nesterov else 0)
    numbers = xp.array(np.array((lr, momentum, 1 - dampening, weight_decay), np.float64))
    for group in _groups(rows):
        starts = sum(1 << at for at, (i, _) in enumerate(group) if first and first[i])
        _launch(xp, "sgd", group, numbers, flags, starts)
    return None


@fused("adam_step", half=True)
def adam_step(
    xp: Namespace, rows: Sequence[Row], lr: float, step_size: float, correction: float, beta1: float, beta2: float,
    eps: float, weight_decay: float, decoupled: bool, amsgrad: bool, maximize: bool,
) -> Any:  # fmt: skip
    """Change all parameters; ``NotImplemented``, with nothing changed, where some cannot be."""
    rows = [row for row in rows if row[1][0].size]
    needed = slice(2, 5 if amsgrad else 4)
    if not all(_alike(arrays) and all(a is not None for a in arrays[needed]) for _, arrays in rows):
        return NotImplemented
    decay = lr * weight_decay if decoupled else weight_decay
    numbers = xp.array(np.array((step_size, beta1, 1 - beta1, beta2, 1 - beta2, eps, correction, decay), np.float64))
    flags = (MAXIMIZE if maximize else 0) | (DECOUPLED if decoupled and weight_decay else 0)
    for group in _groups(rows):
        _launch(xp, "adam", group, numbers, flags | (AMSGRAD if amsgrad else 0), None)
    return None
