"""Which ops have a kernel of their own on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..arrays import Namespace


class Fused(NamedTuple):
    """An op's kernel on a GPU.

    Attributes:
        run: the kernel's arguments; returns what the kernel does, or ``NotImplemented`` where it does not apply,
            before a random number was drawn.
        half: whether it takes float16 and bfloat16 as they are.
        products: whether it is also told, as ``coarse``, if products of float32 may be rounded to TF32.
    """

    run: Callable[..., Any]
    half: bool
    products: bool


KERNELS: Final[dict[str, Fused]] = {}

_loader: list[Callable[[], dict[str, Fused]]] = []
_namespace: list[Callable[[Namespace], Namespace]] = []


def load_with(loader: Callable[[], dict[str, Fused]], namespace: Callable[[Namespace], Namespace]) -> None:
    """Have the kernels, and CuPy as these see it, come from here, once a GPU is used: what runs on arrays does not know
    them."""
    _loader[:], _namespace[:] = [loader], [namespace]


def namespace(cupy: Namespace) -> Namespace:
    """CuPy as kernels see it."""
    return _namespace[0](cupy)


def load() -> dict[str, Fused]:
    """The kernels, by op, in-place forms included."""
    return _loader[0]()


def fused(
    *names: str, half: bool = False, products: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as these ops' kernel on a GPU. Whether it applies may depend on dtypes, shapes, strides and
    attributes, never on values."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            KERNELS[name] = Fused(function, half, products)
        return function

    return register
