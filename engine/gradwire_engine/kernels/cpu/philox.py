"""The session's random bits in compiled code: the words of :mod:`...runtime.random`, block by block. Imports Numba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from .emitter import Context
from .native import inline

WORDS: Final = 4
"""64-bit words of a block."""

U = np.uint64

_FIRST, _SECOND = U(0xD2E7470EE14C6C93), U(0xCA5A826395121157)
_STEP_FIRST, _STEP_SECOND = U(0x9E3779B97F4A7C15), U(0xBB67AE8584CAA73B)


@intrinsic
def _upper_half(context: Context, a: types.Type, b: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(each, wide) for each in args))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), emit


_upper: Any = _upper_half


@inline
def philox(seed: np.uint64, number: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """The four words of a block; both arguments are uint64."""
    a, b, c, d = number, U(0), U(0), U(0)
    first, second = seed, U(0)
    for _ in range(10):
        high, low = _upper(_FIRST, a), _FIRST * a
        other_high, other_low = _upper(_SECOND, c), _SECOND * c
        a, b, c, d = other_high ^ b ^ first, other_low, high ^ d ^ second, low
        first = U(first + _STEP_FIRST)
        second = U(second + _STEP_SECOND)
    return a, b, c, d


def signed(word: int) -> int:
    """A word of 64 bits as the integer that kernels take; they make ``uint64`` of it."""
    return word - (1 << 64) if word >> 63 else word
