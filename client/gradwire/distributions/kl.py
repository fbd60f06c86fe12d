"""Kullback-Leibler divergences: looked up by the classes of the two distributions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Any]
_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_found: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Register ``f(p, q)`` as the divergence of two classes of distributions, and of their subclasses that have none
    of their own.

    Raises:
        TypeError: for what is no class of distributions.
    """
    for given in (type_p, type_q):
        if not isinstance(given, type) or not issubclass(given, Distribution):
            raise TypeError(f"a subclass of Distribution is needed, not {given!r}")

    def register(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _found.clear()
        return function

    return register


def _closest(type_p: type, type_q: type) -> Divergence:
    """The divergence registered for the closest superclasses; the first distribution counts for more in a tie."""

    def distance(pair: tuple[type, type], first: int) -> tuple[int, int]:
        steps = (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1]))
        return steps[first], steps[1 - first]

    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        raise NotImplementedError(f"no KL divergence of {type_p.__name__} from {type_q.__name__} is registered")
    by_p, by_q = (min(matches, key=lambda pair, first=first: distance(pair, first)) for first in (0, 1))  # type: ignore[misc]
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        names = [f"({a.__name__}, {b.__name__})" for a, b in (by_p, by_q)]
        warnings.warn(
            f"the KL divergence of {type_p.__name__} from {type_q.__name__} is ambiguous: {names[0]} is taken, "
            f"{names[1]} fits as well",
            RuntimeWarning, stacklevel=3,
        )  # fmt: skip
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of p from q, the mean over p of ``log p(x) - log q(x)``, for each of a batch.

    Raises:
        NotImplementedError: where no formula is registered for the two classes.
    """
    key = type(p), type(q)
    found = _found.get(key)
    if found is None:
        found = _found[key] = _closest(*key)
    return found(p, q)
