"""Tensors made from nothing but their description, or from bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.meta import Meta

from ..autograd.registry import kernel
from ..runtime.arrays import Array, Namespace, native
from .copying import fitting


@kernel("upload", announced=True)
def upload(xp: Namespace, out: Meta, data: Any, dtype: DType, size: tuple[int, ...], device: str) -> Array:
    nbytes = data.nbytes if isinstance(data, np.ndarray) else memoryview(data).nbytes
    if nbytes != out.nbytes:
        raise ArgumentError(f"upload: {out!r} needs {out.nbytes} bytes, but the payload has {nbytes}")
    host = data if isinstance(data, np.ndarray) else np.frombuffer(data, native(out.dtype))
    return xp.asarray(host.reshape(out.shape))


@kernel("zeros", "empty", announced=True)
def zeros(xp: Namespace, out: Meta, size: tuple[int, ...], dtype: DType | None, device: str, *order: bool) -> Array:
    return xp.zeros(out.shape, native(out.dtype))


@kernel("ones", announced=True)
def ones(xp: Namespace, out: Meta, size: tuple[int, ...], dtype: DType | None, device: str) -> Array:
    return xp.ones(out.shape, native(out.dtype))


@kernel("full", announced=True)
def full(xp: Namespace, out: Meta, size: tuple[int, ...], value: complex, dtype: DType | None, device: str) -> Array:
    return _filled(xp, out, value)


def _filled(xp: Namespace, out: Meta, value: complex) -> Array:
    wanted = native(out.dtype)
    return xp.full(out.shape, fitting(value, wanted), wanted)


@kernel("zeros_like", "empty_like", announced=True)
def zeros_like(xp: Namespace, out: Meta, x: Array, dtype: DType | None, device: str | None, *order: bool) -> Array:
    return xp.zeros(out.shape, native(out.dtype))


@kernel("ones_like", announced=True)
def ones_like(xp: Namespace, out: Meta, x: Array, dtype: DType | None, device: str | None, *order: bool) -> Array:
    return xp.ones(out.shape, native(out.dtype))


@kernel("full_like", announced=True)
def full_like(
    xp: Namespace, out: Meta, x: Array, value: complex, dtype: DType | None, device: str | None, *order: bool
) -> Array:
    return _filled(xp, out, value)


@kernel("arange", announced=True)
def arange(
    xp: Namespace, out: Meta, start: float, end: float | None, step: float, dtype: DType | None, device: str
) -> Array:
    if end is None:
        start = 0
    index = xp.arange(out.shape[0])
    if out.dtype.is_floating_point:
        return index * float(step) + float(start)
    return index * int(step) + int(start)


@kernel("linspace", announced=True)
def linspace(
    xp: Namespace, out: Meta, start: complex, end: complex, steps: int, dtype: DType | None, device: str
) -> Array:
    return _between(xp, out, start, end, steps)


@kernel("logspace", announced=True)
def logspace(
    xp: Namespace, out: Meta, start: float, end: float, steps: int, base: float, dtype: DType | None, device: str
) -> Array:
    return xp.power(xp.asarray(base, "D" if out.dtype.is_complex else "d"), _between(xp, out, start, end, steps))


def _between(xp: Namespace, out: Meta, start: Any, end: Any, steps: int) -> Array:
    """Each half counted from its own end, so that both ends are exact."""
    if steps == 0:
        return xp.zeros(0, native(out.dtype))
    if not out.dtype.is_floating_point and not out.dtype.is_complex:
        start, end = int(start), int(end)
    index = xp.arange(steps).astype("D" if out.dtype.is_complex else "d")
    step = (end - start) / (steps - 1) if steps > 1 else 0  # one step is at the start, however far the end is
    lower = index * step + start
    return xp.where(index.real < max(steps // 2, 1), lower, end - (steps - 1 - index) * step)


@kernel("eye", announced=True)
def eye(xp: Namespace, out: Meta, n: int, m: int | None, dtype: DType | None, device: str) -> Array:
    return xp.eye(*out.shape, dtype=native(out.dtype))


def _triangle(xp: Namespace, count: int, lengths: Array, first: Array) -> tuple[Array, Array]:
    """Rows and columns of ``count`` elements of which row r has ``lengths[r]``, from column ``first[r]`` on."""
    ends = xp.cumsum(lengths)
    index = xp.arange(count)
    row = xp.searchsorted(ends, index, side="right")
    return row, index - (ends - lengths)[row] + first[row]


@kernel("tril_indices", announced=True)
def tril_indices(xp: Namespace, out: Meta, row: int, col: int, offset: int, dtype: DType, device: str) -> Array:
    above = min(max(0, -offset), row)  # rows that have none
    rows = xp.arange(above, max(row, above))
    lengths = xp.clip(rows + (offset + 1), 0, col)
    r, c = _triangle(xp, out.shape[1], lengths, xp.zeros_like(rows))
    return xp.stack((r + above, c))


@kernel("triu_indices", announced=True)
def triu_indices(xp: Namespace, out: Meta, row: int, col: int, offset: int, dtype: DType, device: str) -> Array:
    rows = xp.arange(max(min(row, col - offset), 0))  # further rows have none
    first = xp.clip(rows + offset, 0, col)
    r, c = _triangle(xp, out.shape[1], col - first, first)
    return xp.stack((r, c))
