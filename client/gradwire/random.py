"""``torch.random``: the session's random numbers, their seed and state. Nothing here waits, but ``initial_seed``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ._core.surface.generator import Generator, default_generator
from ._core.tensor.tensor import Tensor

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip


def manual_seed(seed: int) -> Generator:
    """Restart the session's random numbers, on all devices; the same seed gives the same numbers.

    Raises:
        ArgumentValueError: for a seed outside of -2**63 to 2**64 - 1.
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Restart the session's random numbers at a seed that the operating system draws, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the session's random numbers were started with last."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the session's random numbers: a uint8 tensor of 16 elements, not PyTorch's."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Go on from a state that :func:`get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Whatever is drawn inside, random numbers go on afterwards as if nothing had been.

    All devices share the session's generator, so ``devices`` changes nothing.
    """
    if not enabled:
        yield
        return
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)
