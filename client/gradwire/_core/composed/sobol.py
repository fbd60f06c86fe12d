"""Sobol sequences: points that fill a cube evenly. They are computed here, by NumPy, and sent as one tensor.

The direction numbers are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections", 2008, in a table that ``tools/sobol_directions.py`` derives.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
BITS: Final = 30
"""Of a coordinate."""
MAX_DIMENSION: Final = 21201
TABLE: Final = Path(__file__).with_name("sobol_directions.npz")


@lru_cache(maxsize=1)
def _table() -> tuple[Integers, Integers]:
    """Polynomials, from the second dimension on, and the bits of all initial direction numbers."""
    with np.load(TABLE) as table:
        polynomials = np.flatnonzero(np.unpackbits(table["polynomials"])) * 2 + 1
        return polynomials, np.unpackbits(table["initial"]).astype(np.int64)


def directions(dimension: int) -> Integers:
    """Direction numbers ``(dimension, BITS)``, the most significant bit of coordinates first."""
    polynomials, bits = _table()
    polynomials = polynomials[: dimension - 1]
    made = np.ones((dimension, BITS), np.int64)
    degrees = np.frexp(polynomials)[1] - 1
    at = 0
    for degree in range(1, int(degrees.max(initial=0)) + 1):  # dimensions are ordered by their degrees
        rows = np.flatnonzero(degrees == degree)
        numbers, own = made[rows + 1], polynomials[rows]
        end = at + len(rows) * degree * (degree - 1) // 2
        given, at = bits[at:end].reshape(len(rows), -1), end
        for i in range(degree):
            first = i * (i - 1) // 2
            numbers[:, i] = 1 + (given[:, first : first + i] << np.arange(1, i + 1)).sum(1)
        for i in range(degree, BITS):
            value = numbers[:, i - degree].copy()
            for k in range(degree):
                value ^= np.where(own >> k & 1 == 1, numbers[:, i - degree + k] << (degree - k), 0)
            numbers[:, i] = value
        made[rows + 1] = numbers
    return made << np.arange(BITS - 1, -1, -1)


def scrambled(numbers: Integers, triangles: Integers) -> Integers:
    """Direction numbers whose bits are mixed by a lower triangular matrix for each dimension."""
    shifts = np.arange(BITS - 1, -1, -1)
    bits = numbers[:, :, None] >> shifts & 1  # dimension, number, bit
    mixed = np.einsum("dpk,dnk->dnp", triangles, bits) & 1
    return (mixed << shifts).sum(-1)


def points(numbers: Integers, shift: Integers, start: int, count: int) -> Integers:
    """Points ``start`` and the ``count - 1`` after it, as integers of :data:`BITS` bits."""
    index = np.arange(start, start + count, dtype=np.int64)
    gray = index ^ index >> 1
    found = np.tile(shift, (count, 1))
    for bit in range(int(gray.max(initial=0)).bit_length()):
        found[gray >> bit & 1 == 1] ^= numbers[:, bit]
    return found
