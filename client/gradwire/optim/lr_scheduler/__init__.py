"""``torch.optim.lr_scheduler``: learning rates that change from epoch to epoch, or from step to step."""

from .annealing import CosineAnnealingLR, CosineAnnealingWarmRestarts, OneCycleLR
from .composition import ChainedScheduler, SequentialLR
from .cyclic import CyclicLR
from .decay import ConstantLR, ExponentialLR, LambdaLR, LinearLR, MultiplicativeLR, MultiStepLR, PolynomialLR, StepLR
from .plateau import ReduceLROnPlateau
from .schedule import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .schedule import LRScheduler

_LRScheduler = LRScheduler  # the name that programs written for PyTorch 1 use

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
