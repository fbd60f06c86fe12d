"""Kernels of numbers that tell tensors apart by their bits."""

from __future__ import annotations

from ..autograd.registry import kernel
from ..numerics.axes import axes_of, count
from ..runtime.arrays import Array, Namespace


@kernel("hash_tensor")
def hash_tensor(xp: Namespace, x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, mode: int) -> Array:
    axes = axes_of(x, dim)
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    bits = xp.moveaxis(x.view(xp.uint64), axes, range(len(axes))).reshape(count(x, axes), *kept)
    while len(bits) > 1:  # CuPy's bitwise_xor has no reduce
        half = len(bits) // 2
        folded = bits[:half] ^ bits[half : 2 * half]
        if len(bits) % 2:
            folded[0] ^= bits[-1]
        bits = folded
    return bits[0]
