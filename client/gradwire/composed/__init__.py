"""Functions that PyTorch has and the op table needs not: each is a few ops of the table, by subject."""

from ..methods import FUNCTIONS
from ..outputs import MADE_BY_HAND, accepts_out
from . import (
    aliases,
    arranging,
    broadcasting,
    calculus,
    copies,
    covariance,
    decompositions,
    drawing,
    elementwise,
    joining,
    layers,
    lowrank,
    normalizing,
    norms,
    recurrent,
    scattering,
    searching,
    sets,
    spectral,
    splitting,
    statistics,
    strided,
    windows,
)

__all__ = [
    "aliases",
    "arranging",
    "broadcasting",
    "calculus",
    "copies",
    "covariance",
    "decompositions",
    "drawing",
    "elementwise",
    "joining",
    "layers",
    "lowrank",
    "normalizing",
    "norms",
    "recurrent",
    "scattering",
    "searching",
    "sets",
    "spectral",
    "splitting",
    "statistics",
    "strided",
    "windows",
]

for _name in MADE_BY_HAND:
    FUNCTIONS[_name] = accepts_out(FUNCTIONS[_name], _name)
aliases.offer_aliases()
