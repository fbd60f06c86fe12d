"""Products of matrices by panels: what has any strides is read where it lies, or laid out once. Imports Numba.

The second factor is cut into panels of up to three vectors of columns, which are laid out one row after the other; of
the first factor a few rows are multiplied at a time, and their sums stay in registers until they are complete.

Places are addresses and all steps are in bytes, so that operands may lie in memory as they like. The last argument of
what is emitted is any number of the dtype.
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
from .native import Element, inline

TALL: Final = 8 if MANY else 4
"""Rows of the first factor that are multiplied together."""

WIDE: Final = 3
"""Vectors of a panel, at most."""

CHUNK: Final = 256
"""Terms of a sum that are added up before they are added to what there is: a panel's rows, which the nearest cache
holds."""

BYTE: Final = ir.IntType(8)


@intrinsic
def _address(typing, array):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, I64)

    return types.int64(array), emit


address: Any = _address
"""Where an array's first element is."""


@intrinsic
def _size_of(typing, number):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return I64(signature.args[0].bitwidth // 8)

    return types.int64(number), emit


size_of: Any = _size_of
"""Bytes of a number."""


class _Bytes(VectorEmitter):
    """Instructions on memory that is addressed by bytes."""

    def from_(self, place: ir.Value) -> ir.Value:
        return self.builder.inttoptr(place, BYTE.as_pointer())

    def number(self, pointer: ir.Value) -> ir.Value:
        return self.builder.load(self._as(pointer, self.element))

    def keep(self, value: ir.Value, pointer: ir.Value) -> None:
        self.builder.store(value, self._as(pointer, value.type))

    def by(self, count: ir.Value | int, step: ir.Value) -> ir.Value:
        return self.builder.mul(I64(count) if isinstance(count, int) else count, step)


def _tile(rows: int, vectors: int, keeps: bool = False) -> Any:
    @intrinsic
    def multiply(  # type: ignore[no-untyped-def]
        typing, a, a_row, a_step, high, b, b_step, panel, count, out, out_row, columns, first, first_row, kind
    ):
        def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
            e = _Bytes(context, builder, signature.args[-1])
            a, a_row, a_step, high, b, b_step, panel, count, out, out_row, columns, first, first_row, _ = args
            last = builder.sub(high, I64(1))
            offsets = [I64(0)]
            for r in range(1, rows):  # rows beyond the last one are the last one, and are not kept
                row = builder.select(builder.icmp_signed("<", last, I64(r)), last, I64(r))
                offsets.append(builder.mul(row, a_row))
            sums = e.accumulators(rows, vectors)
            for line in sums:
                for sum_ in line:
                    builder.store(ir.Constant(e.vector, None), sum_)
            ours, theirs, kept = e.from_(a), e.from_(b), e.from_(panel)
            mask = e.lanes_below(builder.sub(columns, I64((vectors - 1) * e.lanes)))
            with loop_over(builder, count) as loop:
                here = e.at(theirs, e.by(loop.index, b_step))
                places = [e.at(here, v * VECTOR) for v in range(vectors)]
                terms = [e.load_some(at, mask) if keeps and at is places[-1] else e.load(at) for at in places]
                if keeps:
                    to = e.at(kept, e.by(loop.index, I64(vectors * VECTOR)))
                    for v in range(vectors):
                        e.store(terms[v], e.at(to, v * VECTOR))
                own = e.at(ours, e.by(loop.index, a_step))
                for r in range(rows):
                    factor = e.splat(e.number(e.at(own, offsets[r])))
                    for v in range(vectors):
                        builder.store(e.fused(factor, terms[v], builder.load(sums[r][v])), sums[r][v])
            made, begun = e.from_(out), e.from_(first)
            adds = builder.icmp_signed("!=", first, I64(0))
            for r in range(rows):
                with builder.if_then(builder.icmp_signed(">", high, I64(r))):
                    with builder.if_then(adds):
                        line = e.at(begun, e.by(r, first_row))
                        for v in range(vectors):
                            at = e.at(line, v * VECTOR)
                            term = e.load(at) if v < vectors - 1 else e.load_some(at, mask)
                            builder.store(builder.fadd(term, builder.load(sums[r][v])), sums[r][v])
                    line = e.at(made, e.by(r, out_row))
                    for v in range(vectors - 1):
                        e.store(builder.load(sums[r][v]), e.at(line, v * VECTOR))
                    e.store_some(builder.load(sums[r][-1]), e.at(line, (vectors - 1) * VECTOR), mask)
            return context.get_dummy_value()

        i = types.int64
        return types.void(*[i] * 13, kind), emit

    return multiply


_tall_3, _tall_2, _tall_1 = (_tile(TALL, n) for n in (3, 2, 1))
_low_3, _low_2, _low_1 = (_tile(4, n) for n in (3, 2, 1))
_first_3, _first_2, _first_1 = (_tile(TALL, n, True) for n in (3, 2, 1))


@apart
def multiply_rows(
    rows: int, vectors: int, a: int, a_row: int, a_step: int, b: int, b_step: int, laid_out: bool, panel: int,
    count: int, out: int, out_row: int, columns: int, first: int, first_row: int, one: Element,
) -> None:  # fmt: skip
    """Rows times a panel: ``out[r, n] = first[r, n] + sum over k of a[r, k] * b[k, n]`` for ``n`` below ``columns``.

    The first rows lay out the panel on the way, unless it has been. The sum's terms are added in order, and ``first``
    last; where that is 0 there is none.
    """
    wide = vectors * VECTOR
    for r in range(0, rows, TALL):
        left = rows - r
        theirs, step = (panel, wide) if r or laid_out else (b, b_step)
        job = (
            a + r * a_row, a_row, a_step, min(left, TALL), theirs, step, panel, count, out + r * out_row, out_row,
            columns, first + r * first_row, first_row, one,
        )  # fmt: skip
        if not r and not laid_out:
            if vectors == 3:
                _first_3(*job)
            elif vectors == 2:
                _first_2(*job)
            else:
                _first_1(*job)
        elif MANY and left <= 4:
            if vectors == 3:
                _low_3(*job)
            elif vectors == 2:
                _low_2(*job)
            else:
                _low_1(*job)
        elif vectors == 3:
            _tall_3(*job)
        elif vectors == 2:
            _tall_2(*job)
        else:
            _tall_1(*job)


# Laying out a panel


@intrinsic
def _turned(typing, source, step, count, columns, target, target_step, kind):  # type: ignore[no-untyped-def]
    """Rows of a vector each, of columns whose elements are consecutive; as many as make whole squares.

    What is beyond ``columns`` has the last one's elements.
    """

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        e = _Bytes(context, builder, signature.args[-1])
        read, written = e.from_(args[0]), e.from_(args[4])
        last = builder.sub(args[3], I64(1))
        lines = []
        for r in range(e.lanes):
            row = builder.select(builder.icmp_signed("<", last, I64(r)), last, I64(r))
            lines.append(e.at(read, builder.mul(row, args[1])))
        with loop_over(builder, builder.sdiv(args[2], I64(e.lanes))) as loop:
            at = e.by(loop.index, I64(VECTOR))
            square = [e.load(e.at(line, at)) for line in lines]
            far = e.lanes // 2
            while far:
                low = [i if not i & far else e.lanes + i - far for i in range(e.lanes)]
                high = [i + far if not i & far else e.lanes + i for i in range(e.lanes)]
                for r in range(e.lanes):
                    if not r & far:
                        pair = square[r], square[r + far]
                        square[r], square[r + far] = e.shuffled(*pair, low), e.shuffled(*pair, high)
                far //= 2
            to = e.at(written, e.by(e.by(loop.index, I64(e.lanes)), args[5]))
            for r, line in enumerate(square):
                e.store(line, e.at(to, e.by(r, args[5])))
        return context.get_dummy_value()

    i = types.int64
    return types.void(*[i] * 6, kind), emit


@intrinsic
def _gathered(typing, source, step, count, columns, target, target_step, kind):  # type: ignore[no-untyped-def]
    """``count`` consecutive elements of each of ``columns`` columns, one by one."""

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        e = _Bytes(context, builder, signature.args[-1])
        read, written = e.from_(args[0]), e.from_(args[4])
        size = I64(e.bits // 8)
        with loop_over(builder, args[2]) as row, loop_over(builder, args[3]) as column:
            place = builder.add(e.by(row.index, size), e.by(column.index, args[1]))
            to = builder.add(e.by(row.index, args[5]), e.by(column.index, size))
            e.keep(e.number(e.at(read, place)), e.at(written, to))
        return context.get_dummy_value()

    i = types.int64
    return types.void(*[i] * 6, kind), emit


_turn: Any = _turned
_gather: Any = _gathered


@apart
def lay_out(vectors: int, b: int, b_column: int, count: int, columns: int, panel: int, one: Element) -> None:
    """A panel of so many columns, whose elements are consecutive."""
    size = size_of(one)
    lanes = VECTOR // size
    for v in range(vectors):
        here, source, to = columns - v * lanes, b + v * lanes * b_column, panel + v * VECTOR
        _turn(source, b_column, count, here, to, vectors * VECTOR, one)
        done = count // lanes * lanes
        _gather(
            source + done * size, b_column, count - done, min(here, lanes), to + done * vectors * VECTOR,
            vectors * VECTOR, one,
        )  # fmt: skip


@inline
def panels_of(vectors: int) -> int:
    """Into how many panels so many vectors of columns are cut."""
    return (vectors + WIDE - 1) // WIDE


@inline
def panel_begin(vectors: int, panel: int) -> int:
    """The vector with which a panel begins; the last two share four, so that none has a single one beside others."""
    begin = panel * WIDE
    if vectors % WIDE == 1 and panel and panel == vectors // WIDE:
        return begin - 1
    return min(begin, vectors)


# Whole products


@inline
def room_for(terms: int, one: Element) -> int:
    """Elements of the memory that a panel of so many rows is laid out in, from :func:`aligned` on."""
    room: int = (terms * WIDE + 1) * (VECTOR // size_of(one))
    return room


@inline
def aligned(place: int) -> int:
    """The first place from there on where a vector may begin."""
    return (place + VECTOR - 1) // VECTOR * VECTOR


@inline
def multiply_panel(
    unit: int, high: int, a: int, a_row: int, a_step: int, b: int, b_row: int, b_step: int, rows: int, inner: int,
    columns: int, first: int, first_row: int, out: int, out_row: int, panel: int, one: Element,
) -> None:  # fmt: skip
    """One panel of one block of rows of a product; places and steps in bytes, ``first`` 0 where there is none."""
    size = size_of(one)
    lanes = VECTOR // size
    vectors = (columns + lanes - 1) // lanes
    panels, most = panels_of(vectors), terms_together(inner)
    m, p = unit // panels * high, unit % panels
    v = panel_begin(vectors, p)
    wide, n = panel_begin(vectors, p + 1) - v, v * lanes
    turned = b_step != size
    ours, theirs, to = a + m * a_row, b + n * b_step, out + m * out_row + n * size
    seen, step = first, first_row
    if first:
        seen = first + m * first_row + n * size
    for k in range(0, inner, most):
        count = min(most, inner - k)
        if turned:
            lay_out(wide, theirs + k * b_row, b_step, count, columns - n, panel, one)
        multiply_rows(
            min(high, rows - m), wide, ours + k * a_step, a_row, a_step, theirs + k * b_row, b_row, turned, panel,
            count, to, out_row, columns - n, seen, step, one,
        )  # fmt: skip
        seen, step = to, out_row


@inline
def most_terms(inner: int) -> int:
    """The most that :func:`terms_together` says for sums of up to so many terms."""
    return min(CHUNK, inner)


@inline
def terms_together(inner: int) -> int:
    """Terms of a sum that are added up before they are added to what there is."""
    chunks = (inner + CHUNK - 1) // CHUNK
    return (inner + chunks - 1) // chunks


@inline
def matrix_of(stack: Array, i: int, j: int) -> int:
    """Where a matrix of a stack of stacks begins; a stack of one has it for all."""
    place: int = address(stack) + (i if stack.shape[0] > 1 else 0) * stack.strides[0]
    return place + (j if stack.shape[1] > 1 else 0) * stack.strides[1]


@apart
def multiply_matrix(
    a: int, a_row: int, a_step: int, b: int, b_row: int, b_step: int, rows: int, inner: int, columns: int,
    out: int, out_row: int, panel: int, one: Element,
) -> None:  # fmt: skip
    """``out = a @ b`` by one thread; places and steps in bytes.

    Of ``b`` the rows or the columns are consecutive in memory, of ``out`` the rows.
    """
    lanes = VECTOR // size_of(one)
    for unit in range(panels_of((columns + lanes - 1) // lanes)):
        multiply_panel(
            unit, rows, a, a_row, a_step, b, b_row, b_step, rows, inner, columns, 0, 0, out, out_row, panel, one
        )  # fmt: skip
