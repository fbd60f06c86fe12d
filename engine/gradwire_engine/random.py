"""A session's random numbers: counter-based, so that they depend on a seed and a position and on nothing else.

The generator is Philox4x64-10 [Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011]: a bijection of a
256-bit counter under a 128-bit key. Block ``n`` of a seed is four 64-bit words, the same whether NumPy or a GPU
computes it and in whichever order. The state is the seed and the number of the next block, so a journal that
is replayed draws the same numbers.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

from .backends import native

_WORD: Final = 1 << 64
_TAU: Final = 6.283185307179586

# Mantissa bits of a uniform number: as many as leave the largest one below 1.
_UNIFORM_BITS: Final = {dtypes.float16: 11, dtypes.bfloat16: 8}

_CUDA_SOURCE: Final = r"""
typedef unsigned long long word;

__device__ __forceinline__ void philox_round(word c[4], word k0, word k1) {
    const word m0 = 0xD2E7470EE14C6C93ULL, m1 = 0xCA5A826395121157ULL;
    const word high0 = __umul64hi(m0, c[0]), low0 = m0 * c[0];
    const word high1 = __umul64hi(m1, c[2]), low1 = m1 * c[2];
    c[0] = high1 ^ c[1] ^ k0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ k1;
    c[3] = low0;
}

extern "C" __global__ void philox4x64_10(word seed, word first, word blocks, word* out) {
    const word step = (word)blockDim.x * gridDim.x;
    for (word i = (word)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += step) {
        word c[4] = {first + i, 0, 0, 0};
        word k0 = seed, k1 = 0;
        #pragma unroll
        for (int turn = 0; turn < 10; ++turn) {
            philox_round(c, k0, k1);
            k0 += 0x9E3779B97F4A7C15ULL;
            k1 += 0xBB67AE8584CAA73BULL;
        }
        for (int j = 0; j < 4; ++j) out[4 * i + j] = c[j];
    }
}
"""
_THREADS: Final = 256


class Generator:
    """Random numbers of one session.

    Attributes:
        seed: the key, below 2**64.
        offset: the number of the next block of four words.
    """

    __slots__ = ("_bits", "_bits_at", "_floats", "_kernel", "offset", "seed")

    def __init__(self, seed: int = 0) -> None:
        self._kernel: Any = None
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
        self._bits: Any = None
        self._bits_at = -1

    def branch(self) -> Generator:
        """A generator for one op whose need is not known beforehand, such as one that rejects: this one moves on by
        one block, whatever is drawn from the other."""
        return Generator(int(self.words(np, 1)[0]))

    # Bits

    def _host(self, words: int) -> Any:
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

    def words(self, xp: Any, count: int) -> Any:
        """``count`` words of 64 random bits."""
        if hasattr(xp, "RawKernel"):
            return self._device_words(xp, count)
        drawn = self._host(count).integers(0, _WORD - 1, count, np.uint64, endpoint=True)
        return drawn if xp is np else xp.asarray(drawn)

    def _device_words(self, xp: Any, count: int) -> Any:
        if self._kernel is None:
            self._kernel = xp.RawKernel(_CUDA_SOURCE, "philox4x64_10")
        blocks = -(-count // 4)
        out = xp.empty(4 * blocks, np.uint64)
        if blocks:
            grid = min(-(-blocks // _THREADS), 65_535)
            arguments = (np.uint64(self.seed), np.uint64(self.offset), np.uint64(blocks), out)
            self._kernel((grid,), (_THREADS,), arguments)
        self.offset += blocks
        return out[:count]

    def halves(self, xp: Any, count: int) -> Any:
        """``count`` numbers of 32 random bits: the lower half of each word, then its upper half."""
        if hasattr(xp, "RawKernel"):
            return self.words(xp, -(-count // 2)).view(np.uint32)[:count]
        drawn = self._host(-(-count // 2)).integers(0, (1 << 32) - 1, count, np.uint32, endpoint=True)
        return drawn if xp is np else xp.asarray(drawn)

    # Distributions

    def uniform(self, xp: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        """Uniform in [0, 1), 53 bits fine in float64, 24 in float32; both parts of a complex number."""
        if dtype.is_complex:
            return _paired(self.uniform(xp, (*shape, 2), dtype.to_real()), dtype)
        count = prod(shape)
        if dtype is dtypes.float64:
            if hasattr(xp, "RawKernel"):
                drawn = (self.words(xp, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
            else:
                drawn = xp.asarray(self._host(count).random(count))
        else:
            bits = _UNIFORM_BITS.get(dtype, 24)
            if bits < 24 or hasattr(xp, "RawKernel"):
                drawn = (self.halves(xp, count) >> np.uint32(32 - bits)).astype(np.float32) * np.float32(2.0**-bits)
            else:
                drawn = xp.asarray(self._host(-(-count // 2)).random(count, np.float32))
        return drawn.reshape(shape)

    def normal(self, xp: Any, shape: tuple[int, ...], dtype: DType) -> Any:
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

    def coin(self, xp: Any, shape: tuple[int, ...], p: float) -> Any:
        """True with probability ``p``, to 32 bits."""
        drawn = self.halves(xp, prod(shape)).reshape(shape)
        limit = round(p * (1 << 32))
        return drawn < np.uint32(limit) if limit < 1 << 32 else drawn >= np.uint32(0)

    def integers(self, xp: Any, shape: tuple[int, ...], low: int, high: int) -> Any:
        """int64 from ``low`` up to but without ``high``, a span of at most 2**64."""
        drawn = self.words(xp, prod(shape)).reshape(shape)
        if high - low < _WORD:
            drawn = drawn % np.uint64(high - low)
        return drawn.astype(np.int64) + np.int64(low)

    def permutation(self, xp: Any, n: int) -> Any:
        """0 to ``n - 1`` in random order: the order of random words."""
        return xp.argsort(self.words(xp, n))


def _paired(parts: Any, dtype: DType) -> Any:
    """Complex numbers from a last axis of two parts."""
    return parts.view(native(dtype)).reshape(parts.shape[:-1])
