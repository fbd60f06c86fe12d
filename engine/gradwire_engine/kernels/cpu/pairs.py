"""Windows of 2 by 2 elements, side by side: their largest, their sums, and gradients of these. Imports Numba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from .emitter import I64, Context, VectorEmitter, loop_over


class _Pairs:
    """Rows of which every other element belongs together."""

    def __init__(self, emitter: VectorEmitter, rest: ir.Value | None) -> None:
        """``rest`` is how many lanes count, or ``None`` for all."""
        self.e = emitter
        self.own = self.low = self.high = None
        if rest is not None:
            twice = emitter.builder.add(rest, rest)
            self.own = emitter.lanes_below(rest)
            self.low = emitter.lanes_below(twice)
            self.high = emitter.lanes_below(emitter.builder.sub(twice, I64(emitter.lanes)))

    def _load(self, pointer: ir.Value, mask: ir.Value | None) -> ir.Value:
        return self.e.load(pointer) if mask is None else self.e.load_some(pointer, mask)

    def _store(self, value: ir.Value, pointer: ir.Value, mask: ir.Value | None) -> None:
        if mask is None:
            self.e.store(value, pointer)
        else:
            self.e.store_some(value, pointer, mask)

    def load(self, pointer: ir.Value) -> ir.Value:
        return self._load(pointer, self.own)

    def store(self, value: ir.Value, pointer: ir.Value) -> None:
        self._store(value, pointer, self.own)

    def load_both(self, pointer: ir.Value) -> list[ir.Value]:
        """(those with even places, those with odd ones)"""
        n = self.e.lanes
        low, high = self._load(pointer, self.low), self._load(self.e.at(pointer, n), self.high)
        return [self.e.shuffled(low, high, list(range(start, 2 * n, 2))) for start in (0, 1)]

    def store_both(self, even: ir.Value, odd: ir.Value, pointer: ir.Value) -> None:
        n = self.e.lanes
        order = [lane for i in range(n) for lane in (i, n + i)]
        self._store(self.e.shuffled(even, odd, order[:n]), pointer, self.low)
        self._store(self.e.shuffled(even, odd, order[n:]), self.e.at(pointer, n), self.high)

    def each(self, count: ir.Value, body: Callable[[_Pairs, ir.Value], None]) -> None:
        """``body(pairs, place)`` for all whole vectors, and for what is left."""
        builder, n = self.e.builder, I64(self.e.lanes)
        whole = builder.sdiv(count, n)
        with loop_over(builder, whole) as loop:
            body(self, builder.mul(loop.index, n))
        done = builder.mul(whole, n)
        rest = builder.sub(count, done)
        with builder.if_then(builder.icmp_signed(">", rest, I64(0))):
            body(_Pairs(self.e, rest), done)


def _larger(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    is_a = builder.or_(builder.fcmp_ordered(">=", a, b), builder.fcmp_unordered("uno", a, a))
    return builder.select(is_a, a, b)


def _combiner(combine: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]) -> Any:
    @intrinsic
    def of_four(typing, x, upper, lower, out, to, count):  # type: ignore[no-untyped-def]
        def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
            e = VectorEmitter(context, builder, signature.args[0].dtype)
            up, low = (e.start(signature.args[0], args[0], at) for at in args[1:3])
            made = e.start(signature.args[3], args[3], args[4])

            def body(pairs: _Pairs, at: ir.Value) -> None:
                twice = builder.add(at, at)
                above = combine(builder, *pairs.load_both(e.at(up, twice)))
                below = combine(builder, *pairs.load_both(e.at(low, twice)))
                pairs.store(combine(builder, above, below), e.at(made, at))

            _Pairs(e, None).each(args[5], body)
            return context.get_dummy_value()

        i = types.intp
        return types.void(x, i, i, out, i, i), emit

    return of_four


largest_of_four: Any = _combiner(_larger)
"""``out[to + w]`` = the largest of ``x[upper + 2 * w]``, its neighbour and those in the lower row; NaN if one is."""

sum_of_four: Any = _combiner(lambda builder, a, b: builder.fadd(a, b))
"""The same with their sum."""


@intrinsic
def _gradient_of_four(typing, x, out, g, made, upper, lower, at, count):  # type: ignore[no-untyped-def]
    """The gradient ``g[at + w]`` to the first of the four that is ``out[at + w]``, 0 to the others, in ``made``."""

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        e = VectorEmitter(context, builder, signature.args[0].dtype)
        up, low = (e.start(signature.args[0], args[0], place) for place in args[4:6])
        top, grad = (e.start(signature.args[k], args[k], args[6]) for k in (1, 2))
        up_made, low_made = (e.start(signature.args[3], args[3], place) for place in args[4:6])
        zero = ir.Constant(e.vector, None)

        def body(pairs: _Pairs, place: ir.Value) -> None:
            twice = builder.add(place, place)
            largest, value = pairs.load(e.at(top, place)), pairs.load(e.at(grad, place))
            values = [*pairs.load_both(e.at(up, twice)), *pairs.load_both(e.at(low, twice))]
            parts = []
            for v in values:  # what the first one takes, the others do not see
                # Where an element is NaN, so is the result.
                hit = builder.or_(builder.fcmp_ordered("==", v, largest), builder.fcmp_unordered("uno", v, v))
                parts.append(builder.select(hit, value, zero))
                value = builder.select(hit, zero, value)
            pairs.store_both(parts[0], parts[1], e.at(up_made, twice))
            pairs.store_both(parts[2], parts[3], e.at(low_made, twice))

        _Pairs(e, None).each(args[7], body)
        return context.get_dummy_value()

    i = types.intp
    return types.void(x, out, g, made, i, i, i, i), emit


gradient_of_four: Any = _gradient_of_four
