"""Sums of products that stay in registers: what convolutions and recurrent layers are made of. Imports Numba.

Each function emits the instructions for a fixed number of vectors, so that a sum leaves the registers only when it is
complete. The terms of every sum are added in order, lane by lane. All arrays are flat; places are in elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ...runtime.arrays import Array
from .emitter import I64, MANY, VECTOR, Context, VectorEmitter, apart, loop_over
from .native import inline
from .threads import threads

# Products of a few rows with a few vectors


def _multiplier(rows: int, vectors: int, panel: int = 0) -> Any:
    """For some rows of a panel, which has no others unless it has more."""
    of_term = panel or rows

    @intrinsic
    def multiply(typing, a, a_at, b, b_at, offsets, offset_at, count, out, out_at, step, add):  # type: ignore[no-untyped-def]
        def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
            kinds = signature.args
            e = VectorEmitter(context, builder, kinds[0].dtype)
            factors, terms = e.start(kinds[0], args[0], args[1]), e.start(kinds[2], args[2], args[3])
            places, made = e.start(kinds[4], args[4], args[5]), e.start(kinds[7], args[7], args[8])
            sums = e.accumulators(rows, vectors)
            cells = [
                (sums[o][v], e.at(made, builder.add(builder.mul(args[9], I64(o)), I64(v * e.lanes))))
                for o in range(rows)
                for v in range(vectors)
            ]
            with builder.if_else(args[10]) as (continued, begun):
                with continued:
                    for sum_, place in cells:
                        builder.store(e.load(place), sum_)
                with begun:
                    for sum_, _ in cells:
                        builder.store(ir.Constant(e.vector, None), sum_)
            with loop_over(builder, args[6]) as loop:
                here = e.at(terms, builder.load(e.at(places, loop.index)))
                loaded = [e.load(e.at(here, v * e.lanes)) for v in range(vectors)]
                own = e.at(factors, builder.mul(loop.index, I64(of_term)))
                for o in range(rows):
                    factor = e.splat(builder.load(e.at(own, o)))
                    for v in range(vectors):
                        builder.store(e.fused(factor, loaded[v], builder.load(sums[o][v])), sums[o][v])
            for sum_, place in cells:
                e.store(builder.load(sum_), place)
            return context.get_dummy_value()

        i = types.intp
        return types.void(a, i, b, i, offsets, i, i, out, i, i, types.boolean), emit

    return multiply


_8x3, _8x2, _8x1 = (_multiplier(8, n) for n in (3, 2, 1))
_half_x3, _half_x2 = (_multiplier(4, n, 8) for n in (3, 2))
_4x6, _4x3, _4x2, _4x1 = (_multiplier(4, n) for n in (6, 3, 2, 1))
_2x8, _2x4, _2x1 = (_multiplier(2, n) for n in (8, 4, 1))
_1x8, _1x4, _1x1 = (_multiplier(1, n) for n in (8, 4, 1))


@inline
def panel_rows(left: int) -> int:
    """How many rows the next panel has, of so many that are left: what is missing to it is filled with zeros."""
    return 8 if left > 4 else 4 if left > 2 else left


@inline
def padded_rows(rows: int) -> int:
    """The rows of all panels."""
    return rows // 8 * 8 + (panel_rows(rows % 8) if rows % 8 else 0)


LEAST_SHARE: Final = 32
"""Rows for which an operand is laid out once more, at least."""


def shares_of(rows: int, units: int) -> int:
    """Into how many shares the rows of each unit of work are cut, so that all threads have some: no sum depends on
    it."""
    most = threads()
    return 1 if most == 1 or units >= 2 * most else max(1, min(-(-2 * most // units), rows // LEAST_SHARE))


@inline
def share_of(rows: int, share: int, shares: int) -> tuple[int, int]:
    """The rows of a share: whole panels, but for the last one."""
    high = rows if share == shares - 1 else rows * (share + 1) // shares // 8 * 8
    return rows * share // shares // 8 * 8, high


@inline
def _eight(left: int, job: tuple[Any, ...]) -> int:
    if left == 1:
        _8x1(*job)
        return 1
    if left == 2 or left == 4:
        _8x2(*job)
        return 2
    _8x3(*job)
    return 3


@inline
def _two_halves(left: int, job: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    """Eight rows, four at a time: the sums of three vectors are all that 16 registers hold."""
    if left == 2 or left == 4:
        _half_x2(*job)
        _half_x2(*other)
        return 2
    _half_x3(*job)
    _half_x3(*other)
    return 3


@inline
def _four(left: int, job: tuple[Any, ...]) -> int:
    if MANY and left >= 6:
        _4x6(*job)
        return 6
    if left == 2 or left == 4:
        _4x2(*job)
        return 2
    if left >= 3:
        _4x3(*job)
        return 3
    _4x1(*job)
    return 1


@inline
def _two(left: int, job: tuple[Any, ...]) -> int:
    if MANY and left >= 8:
        _2x8(*job)
        return 8
    if left >= 4:
        _2x4(*job)
        return 4
    _2x1(*job)
    return 1


@inline
def _one(left: int, job: tuple[Any, ...]) -> int:
    if left >= 8:
        _1x8(*job)
        return 8
    if left >= 4:
        _1x4(*job)
        return 4
    _1x1(*job)
    return 1


@apart
def multiply(
    rows: int, vectors: int, a: Array, a_at: int, b: Array, b_at: int, offsets: Array, offset_at: int, count: int,
    out: Array, out_at: int, step: int, add: bool,
) -> None:  # fmt: skip
    """``out[o * step + p] = sum over k of a[k * rows + o] * b[offsets[k] + p]`` for all lanes ``p`` of some vectors.

    ``rows`` is 1, 2, 4 or 8; with ``add`` what ``out`` has is the first term.
    """
    lanes, v = VECTOR // a.itemsize, 0
    while v < vectors:
        left = vectors - v
        job = (a, a_at, b, b_at + v * lanes, offsets, offset_at, count, out, out_at + v * lanes, step, add)
        if rows == 8 and (MANY or left == 1):
            v += _eight(left, job)
        elif rows == 8:
            at = out_at + v * lanes + 4 * step
            v += _two_halves(
                left, job, (a, a_at + 4, b, b_at + v * lanes, offsets, offset_at, count, out, at, step, add)
            )  # fmt: skip
        elif rows == 4:
            v += _four(left, job)
        elif rows == 2:
            v += _two(left, job)
        else:
            v += _one(left, job)


# Products of rows with rows


def _contractor(rows: int, columns: int) -> Any:
    @intrinsic
    def contract(  # type: ignore[no-untyped-def]
        typing, a, a_at, a_step, a_image, b, b_at, b_image, images, offsets, offset_at, count, out, out_at, step
    ):
        def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
            kinds = signature.args
            e = VectorEmitter(context, builder, kinds[0].dtype)
            ours, theirs = e.start(kinds[0], args[0], args[1]), e.start(kinds[4], args[4], args[5])
            places, made = e.start(kinds[8], args[8], args[9]), e.start(kinds[11], args[11], args[12])
            offset = [builder.load(e.at(places, k)) for k in range(columns)]
            sums = e.accumulators(rows, columns)
            for row in sums:
                for sum_ in row:
                    builder.store(ir.Constant(e.vector, None), sum_)
            with loop_over(builder, args[7]) as image:
                here, there = (
                    e.at(ours, builder.mul(image.index, args[3])),
                    e.at(theirs, builder.mul(image.index, args[6])),
                )
                left = [e.at(here, builder.mul(args[2], I64(o))) for o in range(rows)]
                right = [e.at(there, k) for k in offset]
                with loop_over(builder, args[10]) as loop:
                    at = builder.mul(loop.index, I64(e.lanes))
                    # What there is less of is held in registers, and the rest goes by.
                    held, passing = (left, right) if rows <= columns else (right, left)
                    factors = [e.load(e.at(p, at)) for p in held]
                    for i, p in enumerate(passing):
                        term = e.load(e.at(p, at))
                        for j, factor in enumerate(factors):
                            sum_ = sums[j][i] if held is left else sums[i][j]
                            builder.store(e.fused(factor, term, builder.load(sum_)), sum_)
            for o in range(rows):
                for k in range(columns):
                    place = e.at(made, builder.add(builder.mul(args[13], I64(o)), I64(k)))
                    builder.store(builder.fadd(builder.load(place), e.total(builder.load(sums[o][k]))), place)
            return context.get_dummy_value()

        i = types.intp
        return types.void(a, i, i, i, b, i, i, i, offsets, i, i, out, i, i), emit

    return contract


_4by6, _4by3, _4by1 = (_contractor(4, n) for n in (6, 3, 1))
_1by6, _1by3, _1by1 = (_contractor(1, n) for n in (6, 3, 1))


@apart
def contract(
    rows: int, columns: int, a: Array, a_step: int, a_image: int, b: Array, b_image: int, images: int, offsets: Array,
    count: int, out: Array, out_at: int,
) -> None:  # fmt: skip
    """``out[o * columns + k] += a[i * a_image + o * a_step + p] * b[i * b_image + offsets[k] + p]``, summed over images
    ``i`` and all lanes ``p`` of ``count`` vectors.
    """
    k = 0
    while k < columns:
        wide = 6 if MANY and columns - k >= 6 else 3 if columns - k >= 3 else 1
        o = 0
        while o < rows:
            tall = 4 if rows - o >= 4 else 1
            job = (
                a, o * a_step, a_step, a_image, b, 0, b_image, images, offsets, k, count,
                out, out_at + o * columns + k, columns,
            )  # fmt: skip
            if tall == 4:
                if wide == 6:
                    _4by6(*job)
                elif wide == 3:
                    _4by3(*job)
                else:
                    _4by1(*job)
            elif wide == 6:
                _1by6(*job)
            elif wide == 3:
                _1by3(*job)
            else:
                _1by1(*job)
            o += tall
        k += wide
