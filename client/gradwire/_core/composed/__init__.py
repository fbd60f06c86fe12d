"""Functions that are composed of a few ops of the table, by subject."""

from ..dispatch.out_argument import MADE_BY_HAND, accepts_out
from ..surface.methods import FUNCTIONS
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

for _name in MADE_BY_HAND:
    FUNCTIONS[_name] = accepts_out(FUNCTIONS[_name], _name)
elementwise.offer_aliases()
