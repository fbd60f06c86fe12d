"""Casts between float32 and the half precisions, bit by bit those of NumPy and ml_dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ....runtime.arrays import Array, Native
from ....runtime.casting import QUICK
from ..elementary import bits_of
from ..emitter import Context
from ..native import BLOCK, Count, Half1, HalfOut1, In1, Out1, blocks, in_memory, native
from ..threads import split

I, H = np.int32, np.uint16

_REST: Final = I(0x7FFFFFFF)
_INFINITY: Final = I(0x7F800000)


@intrinsic
def _to_half(context: Context, x: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), emit


@intrinsic
def _from_half(context: Context, x: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), emit


_rounded: Any = _to_half
_widened: Any = _from_half


@native()
def to_float16(x: In1, out: HalfOut1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            bits = bits_of(a[i])
            # Of a NaN the upper bits stay as they are; one of the lower ones may be all that makes it one.
            upper = (bits >> I(13)) & I(0x03FF)
            upper = I(1) if upper == I(0) else upper
            nan = I(0x7C00) | upper | ((bits >> I(16)) & I(0x8000))
            done[i] = H(nan) if (bits & _REST) > _INFINITY else _rounded(a[i])


@native()
def from_float16(x: Half1, out: Out1, start: Count, stop: Count) -> None:
    bits = out.view(np.int32)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], bits[at : at + BLOCK]
        for i in range(a.size):
            h = I(a[i])
            nan = ((h & I(0x8000)) << I(16)) | _INFINITY | ((h & I(0x03FF)) << I(13))
            done[i] = nan if (h & I(0x7FFF)) > I(0x7C00) else bits_of(_widened(a[i]))


@native()
def to_bfloat16(x: In1, out: HalfOut1, start: Count, stop: Count) -> None:
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done = x[at : at + BLOCK], out[at : at + BLOCK]
        for i in range(a.size):
            bits = bits_of(a[i])
            rounded = (bits + I(0x7FFF) + ((bits >> I(16)) & I(1))) >> I(16)
            nan = I(0x7FC0) | ((bits >> I(16)) & I(0x8000))
            done[i] = H(nan) if (bits & _REST) > _INFINITY else H(rounded)


def _narrowing(kernel: Callable[..., None], dtype: Native) -> Callable[[Any], Any]:
    def run(x: Array) -> Array:
        out = np.empty_like(x, dtype)
        found = in_memory(x, out)
        if found is None:
            return NotImplemented
        split(kernel, blocks(x.size), BLOCK, found[0], found[1].view(np.uint16))
        return out

    return run


def _from_float16(x: Array) -> Array:
    out = np.empty_like(x, np.float32)
    found = in_memory(x, out)
    if found is None:
        return NotImplemented
    split(from_float16, blocks(x.size), BLOCK, found[0].view(np.uint16), found[1])
    return out


_SINGLE, _HALF, _BRAIN = np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)

QUICK[_SINGLE, _HALF] = _narrowing(to_float16, _HALF)
QUICK[_SINGLE, _BRAIN] = _narrowing(to_bfloat16, _BRAIN)
QUICK[_HALF, _SINGLE] = _from_float16
