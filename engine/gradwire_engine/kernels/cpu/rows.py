"""What kernels do with one row. Imports Numba."""

from __future__ import annotations

import numpy as np

from ...runtime.arrays import Array
from .elementary import bits_of, float_of
from .native import Element, inline, reducing


@inline
def row_top(row: Array) -> Element:
    """The largest element. Compared as integers in the order of floats, which vectorises; where there is NaN, the
    result may be any of the elements."""
    top = np.int32(-0x80000000)
    for j in range(row.size):
        b = bits_of(row[j])
        b ^= (b >> np.int32(31)) & np.int32(0x7FFFFFFF)
        top = b if b > top else top
    return float_of(top ^ ((top >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@reducing
def row_sum(row: Array) -> Element:
    s = row.dtype.type(0)
    for j in range(row.size):
        s += row[j]
    return s


@reducing
def row_dot(a: Array, b: Array) -> Element:
    s = a.dtype.type(0)
    for j in range(a.size):
        s += a[j] * b[j]
    return s


@reducing
def row_squares(row: Array, mean: Element) -> Element:
    """The sum of squared distances from a number."""
    s = row.dtype.type(0)
    for j in range(row.size):
        d = row[j] - mean
        s += d * d
    return s
