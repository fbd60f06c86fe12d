"""Kernels of Bessel and Airy functions, through SciPy."""

from __future__ import annotations

from ..autograd.registry import kernel
from ..numerics.scientific import on_host
from ..numerics.special import bessel
from ..runtime.arrays import Array, Namespace

_NAMES = {
    "special_bessel_j0": "j0", "special_bessel_j1": "j1", "special_bessel_y0": "y0", "special_bessel_y1": "y1",
    "special_modified_bessel_i0": "i0", "special_modified_bessel_i1": "i1", "special_modified_bessel_k0": "k0",
    "special_modified_bessel_k1": "k1", "special_scaled_modified_bessel_k0": "k0e",
    "special_scaled_modified_bessel_k1": "k1e",
}  # fmt: skip


def register_bessel(name: str, function: str) -> None:
    @kernel(name)
    def run(xp: Namespace, x: Array) -> Array:
        return bessel(xp, function, x)


for _name, _function in _NAMES.items():
    register_bessel(_name, _function)


@kernel("special_airy_ai")
def airy_ai(xp: Namespace, x: Array) -> Array:
    from scipy.special import airy

    return on_host(xp, lambda a: airy(a)[0], x)


@kernel("special_spherical_bessel_j0")
def spherical_bessel_j0(xp: Namespace, x: Array) -> Array:
    safe = xp.where(x == 0, 1, x)
    return xp.where(x == 0, 1, xp.where(xp.isinf(x), 0, xp.sin(safe) / safe))
