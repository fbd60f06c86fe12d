"""Kernels of orthogonal polynomials: SciPy's recurrences, which run on the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradwire_protocol.errors import KernelError
from gradwire_protocol.ops.polynomials import HIGHEST

from ..autograd.registry import kernel, measured
from ..numerics.scientific import on_host
from ..runtime.arrays import Array, Namespace

_OVERFLOW = {4: 128, 8: 512}
"""The highest degree of a Hermite polynomial by the dtype's bytes: beyond, PyTorch gives NaN."""


def _evaluated(evaluate: Callable[..., Any], x: Any, n: Any) -> Array:
    """``evaluate(special, degree, x)`` with whole degrees; degree 0 is 1 and a negative one 0 whatever x is."""
    from scipy import special

    dtype = (x if isinstance(x, np.ndarray) else n).dtype
    degree = np.asarray(n).astype(np.int64)
    if degree.size and degree.max() > HIGHEST:
        raise KernelError(f"a polynomial of degree {degree.max()} exceeds the limit of {HIGHEST}")
    x = np.asarray(x, np.float64)
    result = evaluate(special, np.maximum(degree, 0), x)
    return np.where(degree > 0, result, np.where(degree == 0, 1, 0)).astype(dtype)


def _second_kind(special: Namespace, n: Array, x: Array) -> Array:
    return special.eval_chebyu(n, x)


def _third_kind(special: Namespace, n: Array, x: Array) -> Array:
    return special.eval_chebyu(n, x) - special.eval_chebyu(n - 1, x)


def _fourth_kind(special: Namespace, n: Array, x: Array) -> Array:
    return special.eval_chebyu(n, x) + special.eval_chebyu(n - 1, x)


_CHEBYSHEV: dict[str, Callable[..., Any]] = {
    "t": lambda special, n, x: special.eval_chebyt(n, x), "u": _second_kind, "v": _third_kind, "w": _fourth_kind,
}  # fmt: skip


def _degrees(xp: Namespace, x: Array | float, n: Array | float) -> tuple[int, int]:
    """Each element takes as many steps as its degree; they are counted on the host, where they are done."""
    size = max(getattr(x, "size", 1), getattr(n, "size", 1))
    if not isinstance(n, xp.ndarray):
        return 0, size * int(max(n, 0)) if math.isfinite(n) else 0
    highest = float(n.max()) if n.size else 0.0
    return 0, size * int(min(max(highest, 0.0), HIGHEST)) if math.isfinite(highest) else 0


def _register(name: str, evaluate: Callable[..., Any]) -> None:
    measured(name)(_degrees)

    @kernel(name)
    def run(xp: Namespace, x: Array | float, n: Array | float) -> Array:
        return on_host(xp, partial(_evaluated, evaluate), x, n)


def _shifted(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    return lambda special, n, x: evaluate(special, n, 2 * x - 1)


for _letter, _evaluate in _CHEBYSHEV.items():
    _register(f"special_chebyshev_polynomial_{_letter}", _evaluate)
    _register(f"special_shifted_chebyshev_polynomial_{_letter}", _shifted(_evaluate))
_register("special_laguerre_polynomial_l", lambda special, n, x: special.eval_laguerre(n, x))
_register("special_legendre_polynomial_p", lambda special, n, x: special.eval_legendre(n, x))


def _register_hermite(name: str, function: str) -> None:
    def hermite(x: Array | float, n: Array | float) -> Array:
        result = _evaluated(lambda special, m, y: getattr(special, function)(m, y), x, n)
        beyond = np.asarray(n) > _OVERFLOW[result.dtype.itemsize]
        return np.where(np.isinf(result) | beyond, np.nan, result)

    measured(name)(_degrees)

    @kernel(name)
    def run(xp: Namespace, x: Array | float, n: Array | float) -> Array:
        return on_host(xp, hermite, x, n)


_register_hermite("special_hermite_polynomial_h", "eval_hermite")
_register_hermite("special_hermite_polynomial_he", "eval_hermitenorm")
