"""Dropout: coins drawn, compared and applied in one pass. They are the coins that NumPy's kernel would toss."""

from __future__ import annotations

from typing import Final

import numpy as np

from ....autograd.registry import compiled
from ....runtime.arrays import Array, Namespace
from ....runtime.random import Generator
from ..native import BLOCK, ByteOut1, Count, Double, In1, Out1, blocks, dense, native
from ..philox import WORDS, U, philox, signed
from ..threads import split

EACH: Final = 2 * WORDS
"""Coins of a block of random words: each takes half a word."""

_HALF_BITS: Final = U(32)
_LOWER: Final = U(0xFFFFFFFF)


@native("float32", "float64")
def dropped(
    x: In1, seed: Count, first: Count, limit: Count, scale: Double, out: Out1, kept: ByteOut1, start: Count, stop: Count
) -> None:
    T = x.dtype.type
    factor, most = T(scale), U(limit)
    coins = np.empty(BLOCK, np.uint8)
    for at in range(start * BLOCK, min(stop * BLOCK, x.size), BLOCK):
        a, done, mask = x[at : at + BLOCK], out[at : at + BLOCK], kept[at : at + BLOCK]
        for k in range((a.size + EACH - 1) // EACH):
            words = philox(U(seed), U(first) + U(at // EACH + k))
            for w in range(WORDS):
                coins[k * EACH + 2 * w] = (words[w] & _LOWER) < most
                coins[k * EACH + 2 * w + 1] = (words[w] >> _HALF_BITS) < most
        for i in range(a.size):
            mask[i] = coins[i]
            # A product, not a choice: NaN and infinities do not become 0.
            done[i] = a[i] * T(coins[i]) * factor


@compiled("dropout")
def dropout(xp: Namespace, random: Generator, x: Array, p: float, training: bool) -> tuple[Array, Array]:
    if x.dtype.char not in "fd" or not training or not x.size:
        return NotImplemented
    limit, scale = round((1 - p) * (1 << 32)), 1 / (1 - p) if p < 1 else 1.0
    values = dense(x).reshape(-1)
    out, kept = np.empty(x.shape, x.dtype), np.empty(x.shape, bool)
    arguments = (values, signed(random.seed), signed(random.offset), limit, scale)
    split(dropped, blocks(x.size), BLOCK, *arguments, out.reshape(-1), kept.reshape(-1).view(np.uint8))
    random.offset += -(-x.size // EACH)
    return out, kept
