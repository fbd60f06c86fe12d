"""Iteration over a tensor: the first row that a program looks at brings the others along.

``for i in indices: data[i : i + 8]`` looks at one number after the other. Each would be a round trip of its own, though
all of them are there once the first one is, and so is what a number is added to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError

from ..context.modes import MODES
from ..tensor.tensor import Tensor
from . import dispatch
from .known_rows import Rows

MOST_BYTES: Final = 1 << 16
MOST_ROWS: Final = 4096
"""Up to here, a tensor is worth reading whole when one row of it is asked for."""


def rows(source: Tensor) -> Iterator[Tensor]:
    """Views of every index along the first dimension, to be read together where they are small. They are made in
    stretches: a vector of a million elements would else be a million tensors, of which a session has a limit."""
    if source.ndim and source.shape[0] > MOST_ROWS:
        return _stretches(source)
    return _together(source)


def _stretches(source: Tensor) -> Iterator[Tensor]:
    flags = MODES.flags  # those at the begin of the iteration
    for start in range(0, source.shape[0], MOST_ROWS):
        now, MODES.flags = MODES.flags, flags
        try:
            made = _together(dispatch.call("narrow", source, 0, start, min(MOST_ROWS, source.shape[0] - start)))
        finally:
            MODES.flags = now
        yield from made


def _together(source: Tensor) -> Iterator[Tensor]:
    made: tuple[Tensor, ...] = dispatch.call("unbind", source, 0)
    if 1 < len(made) <= MOST_ROWS and not made[0]._levels and len(made) * made[0]._form.nbytes <= MOST_BYTES:
        together = Rows(made)
        for at, row in enumerate(made):
            row._row_of = together, at
    return iter(made)


def __iter__(self: Tensor) -> Iterator[Any]:
    if not self._form.shape:
        raise ArgumentTypeError("iteration over a 0-dim tensor")
    return rows(self)


Tensor.__iter__ = __iter__  # type: ignore[method-assign, assignment]
