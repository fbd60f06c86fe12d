"""Copies with vector instructions, straight and transposed. Imports Numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ...runtime.arrays import Array
from .emitter import I64, Context, VectorEmitter, loop_over
from .native import inline


@intrinsic
def _move(typing, source, source_at, target, target_at, count, term):  # type: ignore[no-untyped-def]
    """``target = source + term`` for so many elements; touches none beyond them."""

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kinds = signature.args
        e = VectorEmitter(context, builder, kinds[0].dtype)
        read, written = e.start(kinds[0], args[0], args[1]), e.start(kinds[2], args[2], args[3])
        term = e.splat(args[5])
        whole = builder.sdiv(args[4], I64(e.lanes))
        with loop_over(builder, whole) as loop:
            at = builder.mul(loop.index, I64(e.lanes))
            e.store(builder.fadd(e.load(e.at(read, at)), term), e.at(written, at))
        done = builder.mul(whole, I64(e.lanes))
        rest = builder.sub(args[4], done)
        with builder.if_then(builder.icmp_signed(">", rest, I64(0))):
            mask = e.lanes_below(rest)
            e.store_some(builder.fadd(e.load_some(e.at(read, done), mask), term), e.at(written, done), mask)
        return context.get_dummy_value()

    i = types.intp
    return types.void(source, i, target, i, i, source.dtype), emit


move: Any = _move


@intrinsic
def _copy_lines(typing, source, source_at, lines, count, target, target_at, step, vectors):  # type: ignore[no-untyped-def]
    """``count`` pieces of ``source``, which begin at ``lines``, each ``step`` elements after the one before it; whole
    vectors of each, also of what is beyond its last element that matters."""

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kinds = signature.args
        e = VectorEmitter(context, builder, kinds[0].dtype)
        read, places = e.start(kinds[0], args[0], args[1]), e.start(kinds[2], args[2], I64(0))
        written = e.start(kinds[4], args[4], args[5])
        single = builder.icmp_signed("==", args[7], I64(1))
        with builder.if_else(single) as (one, more):
            with one, loop_over(builder, args[3]) as loop:
                line = e.at(read, builder.load(e.at(places, loop.index)))
                e.store(e.load(line), e.at(written, builder.mul(loop.index, args[6])))
            with more, loop_over(builder, args[3]) as loop:
                line = e.at(read, builder.load(e.at(places, loop.index)))
                to = e.at(written, builder.mul(loop.index, args[6]))
                with loop_over(builder, args[7]) as inner:
                    at = builder.mul(inner.index, I64(e.lanes))
                    e.store(e.load(e.at(line, at)), e.at(to, at))
        return context.get_dummy_value()

    i = types.intp
    return types.void(source, i, lines, i, target, i, i, i), emit


copy_lines: Any = _copy_lines


def _transposer(rows: int) -> Any:
    @intrinsic
    def transpose(typing, source, source_at, source_step, target, target_at, target_step, count):  # type: ignore[no-untyped-def]
        def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
            kinds = signature.args
            e = VectorEmitter(context, builder, kinds[0].dtype)
            read, written = e.start(kinds[0], args[0], args[1]), e.start(kinds[3], args[3], args[4])

            def pieces(loaded: list[ir.Value]) -> list[ir.Value]:
                while len(loaded) > 1:
                    half = len(loaded) // 2
                    n = loaded[0].type.count
                    order = [lane for i in range(n) for lane in (i, n + i)]
                    loaded = [e.shuffled(a, b, order) for a, b in zip(loaded[:half], loaded[half:], strict=True)]
                whole = loaded[0]
                return [e.shuffled(whole, whole, list(range(i * rows, i * rows + rows))) for i in range(e.lanes)]

            lines = [e.at(read, builder.mul(args[2], I64(r))) for r in range(rows)]
            whole = builder.sdiv(args[6], I64(e.lanes))
            with loop_over(builder, whole) as loop:
                at = builder.mul(loop.index, I64(e.lanes))
                for i, piece in enumerate(pieces([e.load(e.at(line, at)) for line in lines])):
                    e.store(piece, e.at(written, builder.mul(builder.add(at, I64(i)), args[5])))
            done = builder.mul(whole, I64(e.lanes))
            with loop_over(builder, builder.sub(args[6], done)) as loop:
                at = builder.add(loop.index, done)
                to = e.at(written, builder.mul(at, args[5]))
                for r, line in enumerate(lines):
                    builder.store(builder.load(e.at(line, at)), e.at(to, r))
            return context.get_dummy_value()

        i = types.intp
        return types.void(source, i, i, target, i, i, i), emit

    return transpose


transpose_eight: Any = _transposer(8)
"""``target[p * target_step + r] = source[r * source_step + p]`` for 8 rows ``r`` and ``count`` columns ``p``."""


@inline
def transpose(
    rows: int, source: Array, source_at: int, source_step: int, target: Array, target_at: int, target_step: int,
    count: int,
) -> None:  # fmt: skip
    """The same for any number of rows."""
    r = 0
    while rows - r >= 8:
        transpose_eight(source, source_at + r * source_step, source_step, target, target_at + r, target_step, count)
        r += 8
    for p in range(count):
        for q in range(r, rows):
            target[target_at + p * target_step + q] = source[source_at + q * source_step + p]
