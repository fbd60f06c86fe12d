"""Overlap of two strided views of one storage.

The engine checks it before in-place writes, the client before it writes into ``out=``. :func:`find_overlap` is
PyTorch's check, which decides what is refused and covers views without gaps only. :func:`share_elements` is exact, and
decides whether an operand must be copied before the write.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import gcd
from typing import Final, NamedTuple

from .meta import Meta, Shape
from .shapes import is_dense

WORK_LIMIT: Final = 2_000
"""How many partial sums :func:`share_elements` tries before it assumes an overlap."""


class Overlap(Enum):
    """The outcome of PyTorch's check of two views of one storage."""

    NONE = "no element in common"
    FULL = "the same elements in the same order"
    PARTIAL = "the same memory in part, or in another order"
    UNCHECKED = "not checked, because one of them has gaps or repeats elements"


class Region(NamedTuple):
    """The memory of a view: offset and strides count elements of ``itemsize`` bytes."""

    offset: int
    shape: Shape
    stride: Shape
    itemsize: int

    @classmethod
    def of(cls, described: Meta, offset: int) -> Region:
        return cls(offset, described.shape, described.stride, described.dtype.itemsize)

    @property
    def bytes(self) -> tuple[int, int]:
        """The first byte, and the one after the last."""
        last = self.offset
        for extent, step in zip(self.shape, self.stride, strict=True):
            if extent == 0:
                return 0, 0
            last += (extent - 1) * step
        return self.offset * self.itemsize, (last + 1) * self.itemsize


def repeats(described: Meta) -> bool:
    """Whether the tensor is expanded: several of its elements share one memory location."""
    return not described.contiguous and any(
        step == 0 and extent > 1 for step, extent in zip(described.stride, described.shape, strict=True)
    )


def find_overlap(written: Region, operand: Region) -> Overlap:
    """PyTorch's check of two views of one storage."""
    if 0 in written.shape or 0 in operand.shape:
        return Overlap.NONE
    if not (is_dense(written.shape, written.stride) and is_dense(operand.shape, operand.stride)):
        return Overlap.UNCHECKED
    (start, end), (other_start, other_end) = written.bytes, operand.bytes
    if start == other_start and end == other_end:
        return Overlap.FULL if written.stride == operand.stride else Overlap.PARTIAL
    return Overlap.PARTIAL if start < other_end and other_start < end else Overlap.NONE


def share_elements(one: Region, other: Region, limit: int = WORK_LIMIT) -> bool:
    """Whether a byte belongs to elements of both views. Exact within ``limit`` steps, beyond that True."""
    (start, end), (other_start, other_end) = one.bytes, other.bytes
    if start >= other_end or other_start >= end:
        return False
    # Count bytes in a unit that divides both element sizes. A byte of one view is at its start plus a sum of steps, a
    # byte of the other at its end minus such a sum. They coincide if both sums together equal the distance from that
    # start to that end.
    unit = gcd(one.itemsize, other.itemsize)
    counts: dict[int, int] = {}
    for region in (one, other):
        width = region.itemsize // unit
        counts[1] = counts.get(1, 0) + width - 1
        for step, extent in zip(region.stride, region.shape, strict=True):
            counts[step * width] = counts.get(step * width, 0) + extent - 1
    terms = sorted(((step, count) for step, count in counts.items() if step and count), reverse=True)
    return _Sums(terms, limit).reach((other_end - start) // unit - 1)


class _Sums:
    """The sums ``step[0] * n[0] + step[1] * n[1] + ...`` with ``0 <= n[k] <= count[k]``, for descending steps.

    Attributes:
        divisors: per term, the common divisor of all steps from there on.
        largest: per term, the largest sum of the terms from there on.
        whole: per term, whether these sums are all multiples of the divisor up to the largest, so no search is needed.
    """

    def __init__(self, terms: Sequence[tuple[int, int]], limit: int) -> None:
        self.terms = terms
        self.left = limit
        self.divisors, self.largest, self.whole = [0], [0], [True]
        for step, count in reversed(terms):
            divisor, largest = self.divisors[-1], self.largest[-1]
            self.whole.append(self.whole[-1] and (not divisor or (step % divisor == 0 and step <= largest + divisor)))
            self.divisors.append(gcd(step, divisor))
            self.largest.append(largest + step * count)
        for each in (self.divisors, self.largest, self.whole):
            each.reverse()

    def reach(self, total: int, at: int = 0) -> bool:
        """Whether terms from ``at`` on can make this sum; True if the limit is reached first."""
        if not 0 <= total <= self.largest[at]:
            return False
        divisor = self.divisors[at]
        if not divisor:
            return total == 0
        if total % divisor:
            return False
        if self.whole[at]:
            return True
        step, count = self.terms[at]
        # The rest for the other terms must not exceed their largest sum, and must be a multiple of their divisor.
        least = max(0, -(-(total - self.largest[at + 1]) // step))
        period = self.divisors[at + 1] // divisor
        first = total // divisor * pow(step // divisor, -1, period) % period
        for n in range(least + (first - least) % period, min(count, total // step) + 1, period):
            self.left -= 1
            if self.left < 0 or self.reach(total - n * step, at + 1):
                return True
        return False
