"""What recording an op means inside ``vmap``: which dimensions its results are mapped over, and random numbers.

Proxies inside a map have the shapes of one sample. The server knows the rest; the client remembers of a proxy only the
levels at which it is mapped, to refuse at once what cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from gradwire_protocol.errors import ArgumentError

from ..context.handles import Handle
from ..context.modes import MODES

if TYPE_CHECKING:
    from .recorded_call import OpBinding

Levels = tuple[int, ...]


class VmapLevel(NamedTuple):
    """One ``vmap`` that is being run: its depth, how many samples it has, and what random ops do in it."""

    level: int
    size: int
    randomness: str


def next_level(size: int, randomness: str = "error") -> VmapLevel:
    """The map that would be the innermost one now."""
    return VmapLevel(len(MODES.maps) + 1, size, randomness)


@contextmanager
def mapped(size: int, randomness: str = "error") -> Iterator[VmapLevel]:
    """A map over ``size`` samples, for the extent of a ``with``."""
    outer = MODES.maps
    entered = next_level(size, randomness)
    MODES.maps = (*outer, entered)
    try:
        yield entered
    finally:
        MODES.maps = outer


class OutsideMaps:
    """Records ops as they are, whatever maps are being run."""

    def __enter__(self) -> None:
        self._maps = MODES.maps
        MODES.maps = ()

    def __exit__(self, *_: object) -> None:
        MODES.maps = self._maps


def levels_of(entry: OpBinding, values: Sequence[Any]) -> Levels:
    """The levels at which some operand is mapped."""
    found: set[int] = set()
    for i in entry.tensors:
        value = values[i]
        if type(value) in (list, tuple):
            for item in value:
                found.update(getattr(item, "_levels", ()))
        else:
            found.update(getattr(value, "_levels", ()))
    return tuple(sorted(found))


def refuse_reading(tensor: Handle) -> None:
    """Refuse to look at values inside a map.

    Raises:
        ArgumentError: always, naming the tensor.
    """
    raise ArgumentError(
        f"the values of a {tensor._form!r} tensor inside vmap differ from sample to sample: item(), bool(), float(), "
        "tolist() and numpy() cannot be used on it, nor control flow that depends on it; use where()"
    )
