"""Functions that are composed of a few ops of the table, by subject."""

from . import (
    arranging,
    decompositions,
    drawing,
    elementwise,
    joining,
    layers,
    recurrent,
    searching,
    spectral,
    statistics,
    windows,
)

__all__ = [
    "arranging", "decompositions", "drawing", "elementwise", "joining", "layers", "recurrent",
    "searching", "spectral", "statistics", "windows",
]  # fmt: skip

elementwise.offer_aliases()
