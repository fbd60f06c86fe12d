"""Random numbers from the session's generator."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.meta import Meta
from gradwire_protocol.ops.sampling import end_of_integers, whole_numbers

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..numerics.axes import waits
from ..runtime.arrays import Array, Namespace, dtype_of
from ..runtime.random import Generator


@kernel("rand", announced=True)
def rand(xp: Namespace, random: Generator, out: Meta, size: tuple[int, ...], dtype: DType | None, device: str) -> Array:
    return random.uniform(xp, out.shape, out.dtype)


@kernel("rand_like", announced=True)
def rand_like(
    xp: Namespace, random: Generator, out: Meta, x: Array, dtype: DType | None, device: str | None, *order: bool
) -> Array:
    return random.uniform(xp, out.shape, out.dtype)


@kernel("randn", announced=True)
def randn(
    xp: Namespace, random: Generator, out: Meta, size: tuple[int, ...], dtype: DType | None, device: str
) -> Array:
    return random.normal(xp, out.shape, out.dtype)


@kernel("randn_like", announced=True)
def randn_like(
    xp: Namespace, random: Generator, out: Meta, x: Array, dtype: DType | None, device: str | None, *order: bool
) -> Array:
    return random.normal(xp, out.shape, out.dtype)


@kernel("randint", announced=True)
def randint(
    xp: Namespace, random: Generator, out: Meta, low: int, high: int, size: tuple[int, ...], dtype: DType | None,
    device: str,
) -> Array:  # fmt: skip
    return random.integers(xp, out.shape, low, high)


@kernel("randint_like", announced=True)
def randint_like(
    xp: Namespace, random: Generator, out: Meta, x: Array, low: int, high: int, dtype: DType | None, device: str | None,
    *order: bool,
) -> Array:  # fmt: skip
    return random.integers(xp, out.shape, low, high)


@kernel("randperm")
def randperm(xp: Namespace, random: Generator, n: int, dtype: DType, device: str) -> Array:
    return random.permutation(xp, n)


@kernel("normal", announced=True)
def normal(
    xp: Namespace, random: Generator, out: Meta, mean: Array | float, std: Array | float, size: tuple[int, ...] | None,
    dtype: DType | None, device: str,
) -> Array:  # fmt: skip
    if hasattr(std, "dtype") and bool(xp.any(std < 0)):  # a GPU is waited for, by PyTorch too
        raise ArgumentError("normal: std has negative elements")
    return random.normal(xp, out.shape, out.dtype) * std + mean


@kernel("bernoulli", announced=True)
def bernoulli(xp: Namespace, random: Generator, out: Meta, x: Array, p: float | None) -> Array:
    if p is not None:
        return random.coin(xp, out.shape, p)
    return _toss(xp, random, "bernoulli", out.shape, x)


def _toss(xp: Namespace, random: Generator, name: str, shape: tuple[int, ...], p: Array) -> Array:
    """A coin for each probability. On a GPU they are not looked at beforehand, which would mean waiting for it; PyTorch
    does not wait there either, it ends the program."""
    if not waits(xp) and not bool(xp.all((p >= 0) & (p <= 1))):
        raise ArgumentError(f"{name}: some probabilities are outside 0 to 1")
    fine = dtypes.float64 if p.dtype == "d" else dtypes.float32
    return random.uniform(xp, shape, fine) < p


@kernel("multinomial")
def multinomial(xp: Namespace, random: Generator, weights: Array, num_samples: int, replacement: bool) -> Array:
    weights = weights.astype("d")
    sums = weights.sum(-1)
    # A GPU is waited for, as PyTorch waits for it where it draws one number or without replacement.
    if not bool(xp.all((weights >= 0) & xp.isfinite(weights))):
        raise ArgumentError("multinomial: some weights are negative, infinite or NaN")
    if not bool(xp.all(sums > 0)):
        raise ArgumentError("multinomial: the sum of some weights is 0")
    if not replacement:
        # The races of exponential clocks: who rings first is distributed as the weights are.
        clock = -xp.log1p(-random.uniform(xp, weights.shape, dtypes.float64)) / weights
        clock = xp.where(weights > 0, clock, xp.inf)
        return xp.argsort(clock, axis=-1)[..., :num_samples]
    ends = xp.cumsum(weights, axis=-1)
    drawn = random.uniform(xp, (*weights.shape[:-1], num_samples), dtypes.float64) * ends[..., -1:]
    if weights.ndim == 1:
        return xp.searchsorted(ends, drawn, side="right")
    # One sorted row after the other, each moved behind the one before.
    rows = xp.arange(len(ends))[:, None]
    scale = ends[:, -1:]
    flat = (ends / scale + 2 * rows).reshape(-1)
    found = xp.searchsorted(flat, (drawn / scale + 2 * rows).reshape(-1), side="right")
    return xp.clip(found.reshape(drawn.shape) - rows * weights.shape[-1], 0, weights.shape[-1] - 1)


# Samplers that overwrite a tensor


@kernel("uniform_")
def uniform_(xp: Namespace, random: Generator, x: Array, low: float, high: float) -> None:
    x[...] = random.uniform(xp, x.shape, dtype_of(x)) * (high - low) + low


@kernel("normal_")
def normal_(xp: Namespace, random: Generator, x: Array, mean: float, std: float) -> None:
    x[...] = random.normal(xp, x.shape, dtype_of(x)) * std + mean


@kernel("exponential_")
def exponential_(xp: Namespace, random: Generator, x: Array, lambd: float) -> None:
    fine = dtypes.float64 if x.dtype == "d" else dtypes.float32
    x[...] = xp.log1p(-random.uniform(xp, x.shape, fine)) / -lambd


@kernel("geometric_")
def geometric_(xp: Namespace, random: Generator, x: Array, p: float) -> None:
    drawn = xp.ceil(xp.log1p(-random.uniform(xp, x.shape, dtypes.float64)) / math.log1p(-p))
    drawn = xp.maximum(drawn, 1)
    top = whole_numbers(dtype_of(x)) - 1
    x[...] = xp.minimum(drawn, top) if x.dtype.kind in "iu" else drawn


@kernel("log_normal_")
def log_normal_(xp: Namespace, random: Generator, x: Array, mean: float, std: float) -> None:
    fine = dtypes.float64 if x.dtype == "d" else dtypes.float32
    x[...] = xp.exp(random.normal(xp, x.shape, fine) * std + mean)


@kernel("cauchy_")
def cauchy_(xp: Namespace, random: Generator, x: Array, median: float, sigma: float) -> None:
    x[...] = xp.tan((random.uniform(xp, x.shape, dtypes.float64) - 0.5) * math.pi) * sigma + median


@kernel("bernoulli_")
def bernoulli_(xp: Namespace, random: Generator, x: Array, p: Any) -> None:
    if hasattr(p, "dtype"):
        x[...] = _toss(xp, random, "bernoulli_", x.shape, p)
        return
    x[...] = random.coin(xp, x.shape, p)


@kernel("random_")
def random_(xp: Namespace, random: Generator, x: Array, low: int, high: int | None) -> None:
    low, high = _representable(dtype_of(x), low, end_of_integers(dtype_of(x), low) if high is None else high)
    x[...] = random.integers(xp, x.shape, low, high)


def _representable(dtype: DType, low: int, high: int) -> tuple[int, int]:
    """Bounds that no integer between them is rounded across, where a floating dtype has gaps between integers."""
    if dtype.category < dtypes.FLOATING or high - low >= 1 << 64:
        return low, high
    exact = (whole_numbers(dtype) - 1).bit_length() - 1
    last = max(low, high - 1)
    if (short := last.bit_length() - exact) > 0 and last > 0:
        high = max(low + 1, high - (1 << short))
    if (short := low.bit_length() - exact) > 0 and low < 0:
        low = min(high - 1, low + (1 << short))
    return low, high


derivative("normal", mean=lambda s, g: F.zeros_like(g), std=lambda s, g: F.zeros_like(g))
derivative("bernoulli", self=lambda s, g: F.zeros_like(g))
for _name in ("uniform_", "normal_", "exponential_", "bernoulli_", "random_", "geometric_", "log_normal_", "cauchy_"):
    derivative(_name, self=lambda s, g: F.zeros_like(g))
