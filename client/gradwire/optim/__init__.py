"""``torch.optim``: optimizers whose step is one record per parameter group, and learning rate schedules."""

from . import lr_scheduler
from .optimizer import Optimizer

__all__ = ["Optimizer", "lr_scheduler"]
