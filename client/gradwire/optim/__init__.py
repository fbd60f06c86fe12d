"""``torch.optim``: optimizers whose step is one record per parameter group, and learning rate schedules."""

from .._core.optimizers.optimizer import Optimizer
from .._core.surface.module_aliases import add_aliases as _add_aliases
from .._core.surface.unsupported import explaining as _explaining
from . import lr_scheduler, optimizer, swa_utils
from .algorithms import (
    ASGD,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Muon,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
    SparseAdam,
)
from .lbfgs import LBFGS

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "optimizer", "swa_utils",
]  # fmt: skip

_PATHS = """
adadelta: Adadelta   adafactor: Adafactor   adagrad: Adagrad   adam: Adam   adamax: Adamax   adamw: AdamW   asgd: ASGD
muon: Muon   nadam: NAdam   radam: RAdam   rmsprop: RMSprop   rprop: Rprop   sgd: SGD   sparse_adam: SparseAdam
"""
_add_aliases(__name__, _PATHS, __name__)

__getattr__ = _explaining(__name__)
