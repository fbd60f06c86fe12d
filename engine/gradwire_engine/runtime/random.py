"""A session's random numbers: counter-based, so that they depend on a seed and a position and on nothing else.

The generator is Philox4x64-10 [Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011]: a bijection of a
256-bit counter under a 128-bit key. Block ``n`` of a seed is four 64-bit words, the same whether NumPy or a GPU
computes it and in whichever order. The state is the seed and the number of the next block, so a journal that
is replayed draws the same numbers.
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

from .arrays import Array, DeviceArray, Namespace, native
from .cuda import launching

_WORD: Final = 1 << 64
_TAU: Final = 6.283185307179586

# Mantissa bits of a uniform number: as many as leave the largest one below 1.
_UNIFORM_BITS: Final = {dtypes.float16: 11, dtypes.bfloat16: 8}


class Generator:
    """Random numbers of one session.

    Attributes:
        seed: the key, below 2**64.
        offset: the number of the next block of four words.
        base: while a graph is captured, the offset that it starts from, and the device's memory that will hold the
            offset at each launch.
    """

    __slots__ = ("_bits", "_bits_at", "_floats", "base", "offset", "seed")

    def __init__(self, seed: int = 0) -> None:
        self.base: tuple[int, DeviceArray] | None = None
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> None:
        """Start over at this seed, taken modulo 2**64."""
        self.set_state((seed % _WORD, 0))

    def get_state(self) -> tuple[int, int]:
        """(seed, offset)."""
        return self.seed, self.offset

    def set_state(self, state: tuple[int, int]) -> None:
        """Go on from a state that :meth:`get_state` gave."""
        self.seed, self.offset = state
        self._bits_at = -1

    def branch(self) -> Generator:
        """A generator for one op whose need is not known beforehand, such as one that rejects: this one moves on by
        one block, whatever is drawn from the other."""
        return Generator(int(self.words(np, 1)[0]))

    # Bits

    def _host(self, words: int) -> np.random.Generator:
        """NumPy's generator, standing at the offset, which moves on by as many blocks as hold ``words``."""
        if self._bits_at != self.offset:
            # NumPy counts up before it computes: it starts with the block after its counter.
            before = np.array([(self.offset - 1) % _WORD, *[_WORD - 1 if self.offset == 0 else 0] * 3], np.uint64)
            self._bits = np.random.Philox(counter=before, key=np.array([self.seed, 0], np.uint64))
            self._floats = np.random.Generator(self._bits)
        else:
            self._bits.advance(0)  # forgets what is left of the last block
        self.offset = self._bits_at = self.offset + -(-words // 4)
        return self._floats

    def words(self, xp: Namespace, count: int) -> Array:
        """``count`` words of 64 random bits."""
        if hasattr(xp, "RawKernel"):
            return self._device_words(xp, count)
        drawn = self._host(count).integers(0, _WORD - 1, count, np.uint64, endpoint=True)
        return drawn if xp is np else xp.asarray(drawn)

    def take(self, blocks: int) -> tuple[int, DeviceArray | None]:
        """Move on by this many blocks, which a kernel of the GPU computes itself: the number of the first, and the
        memory that it is counted from, if any."""
        first, memory = (self.offset, None) if self.base is None else (self.offset - self.base[0], self.base[1])
        self.offset += blocks
        return first, memory

    def _device_words(self, xp: Namespace, count: int) -> Array:
        blocks = -(-count // 4)
        out = xp.empty(4 * blocks, np.uint64)
        if blocks:
            first, memory = self.take(blocks)
            grid, threads = launching.strided(blocks)
            arguments = (np.uint64(self.seed), np.uint64(first), memory, np.uint64(blocks), out)
            launching.kernel(xp, "philox4x64_10", "philox")(grid, threads, arguments)
        return out[:count]

    def halves(self, xp: Namespace, count: int) -> Array:
        """``count`` numbers of 32 random bits: the lower half of each word, then its upper half."""
        if hasattr(xp, "RawKernel"):
            return self.words(xp, -(-count // 2)).view(np.uint32)[:count]
        drawn = self._host(-(-count // 2)).integers(0, (1 << 32) - 1, count, np.uint32, endpoint=True)
        return drawn if xp is np else xp.asarray(drawn)

    # Distributions

    def uniform(self, xp: Namespace, shape: tuple[int, ...], dtype: DType) -> Array:
        """Uniform in [0, 1), 53 bits fine in float64, 24 in float32; both parts of a complex number."""
        if dtype.is_complex:
            return _paired(self.uniform(xp, (*shape, 2), dtype.to_real()), dtype)
        count = prod(shape)
        if dtype is dtypes.float64:
            if hasattr(xp, "RawKernel"):
                drawn: Array = (self.words(xp, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
            else:
                drawn = xp.asarray(self._host(count).random(count))
        else:
            bits = _UNIFORM_BITS.get(dtype, 24)
            if bits < 24 or hasattr(xp, "RawKernel"):
                drawn = (self.halves(xp, count) >> np.uint32(32 - bits)).astype(np.float32) * np.float32(2.0**-bits)
            else:
                drawn = xp.asarray(self._host(-(-count // 2)).random(count, np.float32))
        return drawn.reshape(shape)

    def normal(self, xp: Namespace, shape: tuple[int, ...], dtype: DType) -> Array:
        """Normal with mean 0 and variance 1 (of a complex number, half of it in each part), after Box and Muller."""
        if dtype.is_complex:
            return _paired(self.normal(xp, (*shape, 2), dtype.to_real()), dtype) * 0.5**0.5
        count = prod(shape)
        pairs = -(-count // 2)
        fine = dtype if dtype is dtypes.float64 else dtypes.float32
        drawn = self.uniform(xp, (2, pairs), fine)
        radius = xp.sqrt(-2 * xp.log1p(-drawn[0]))
        angle = drawn[1] * _TAU
        both = xp.concatenate((radius * xp.cos(angle), radius * xp.sin(angle)))
        return both[:count].reshape(shape)

    def coin(self, xp: Namespace, shape: tuple[int, ...], p: float) -> Array:
        """True with probability ``p``, to 32 bits."""
        drawn = self.halves(xp, prod(shape)).reshape(shape)
        limit = round(p * (1 << 32))
        return drawn < np.uint32(limit) if limit < 1 << 32 else drawn >= np.uint32(0)

    def integers(self, xp: Namespace, shape: tuple[int, ...], low: int, high: int) -> Array:
        """int64 from ``low`` up to but without ``high``, a span of at most 2**64."""
        drawn = self.words(xp, prod(shape)).reshape(shape)
        if high - low < _WORD:
            drawn = drawn % np.uint64(high - low)
        return drawn.astype(np.int64) + np.int64(low)

    def permutation(self, xp: Namespace, n: int) -> Array:
        """0 to ``n - 1`` in random order: the order of random words."""
        return xp.argsort(self.words(xp, n))


def _paired(parts: Array, dtype: DType) -> Array:
    """Complex numbers from a last axis of two parts."""
    return parts.view(native(dtype)).reshape(parts.shape[:-1])
