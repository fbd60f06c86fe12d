"""Sums of products of vectors, lane by lane: what convolutions of single channels are made of. Imports Numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ...runtime.arrays import Array
from .emitter import I64, VECTOR, Context, VectorEmitter, apart, loop_over
from .native import inline

VECTORS: Final = 2
"""Vectors of channels that are worked on together."""


@inline
def lanes_of(x: Array) -> int:
    """Channels that are worked on together."""
    return VECTORS * VECTOR // x.itemsize


def _correlator(together: int) -> Any:
    @intrinsic
    def correlate(typing, a, b, offsets, offset_at, count, shifts, shift_at, out, places):  # type: ignore[no-untyped-def]
        def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
            kinds = signature.args
            e = VectorEmitter(context, builder, kinds[0].dtype)
            factors, terms, made = (e.start(kinds[i], args[i], I64(0)) for i in (0, 1, 7))
            offset = e.start(kinds[2], args[2], args[3])
            shift, place = e.start(kinds[5], args[5], args[6]), e.start(kinds[8], args[8], args[6])
            here = [e.at(terms, builder.load(e.at(shift, t))) for t in range(together)]
            there = [e.at(made, builder.load(e.at(place, t))) for t in range(together)]
            sums = e.accumulators(together, VECTORS)
            for t in range(together):
                for v in range(VECTORS):
                    builder.store(e.load(e.at(there[t], v * e.lanes)), sums[t][v])
            with loop_over(builder, args[4]) as loop:
                own = e.at(factors, builder.mul(loop.index, I64(VECTORS * e.lanes)))
                held = [e.load(e.at(own, v * e.lanes)) for v in range(VECTORS)]
                at = builder.load(e.at(offset, loop.index))
                for t in range(together):
                    line = e.at(here[t], at)
                    for v in range(VECTORS):
                        term = e.load(e.at(line, v * e.lanes))
                        builder.store(e.fused(held[v], term, builder.load(sums[t][v])), sums[t][v])
            for t in range(together):
                for v in range(VECTORS):
                    e.store(builder.load(sums[t][v]), e.at(there[t], v * e.lanes))
            return context.get_dummy_value()

        i = types.intp
        return types.void(a, b, offsets, i, i, shifts, i, out, places), emit

    return correlate


_six, _three, _one = (_correlator(n) for n in (6, 3, 1))


@apart
def correlate(
    a: Array, b: Array, offsets: Array, offset_at: int, count: int, shifts: Array, places: Array, begin: int, end: int,
    out: Array,
) -> None:  # fmt: skip
    """``out[places[t] + p] += sum over k of a[k * lanes + p] * b[offsets[k] + shifts[t] + p]`` for all lanes ``p``.

    For ``t`` between ``begin`` and ``end``, and ``count`` offsets from ``offset_at`` on; terms are added in order.
    """
    t = begin
    while t < end:
        job = (a, b, offsets, offset_at, count, shifts, t, out, places)
        if end - t >= 6:
            _six(*job)
            t += 6
        elif end - t >= 3:
            _three(*job)
            t += 3
        else:
            _one(*job)
            t += 1
