"""``torch.optim.lr_scheduler``: learning rates that change from epoch to epoch, or from step to step."""

from typing import Any

from ..._core.tensor.tensor import Tensor as _Tensor
from .curves import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    StepLR,
)
from .schedule import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .schedule import ChainedScheduler, LRScheduler, ReduceLROnPlateau, SequentialLR
from .schedule import _enable_get_lr_call as _enable_get_lr_call
from .schedule import _warn_get_lr_called_within_step as _warn_get_lr_called_within_step
from .schedule import per_group as _per_group

_LRScheduler = LRScheduler  # the name that programs written for PyTorch 1 use

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


def _format_param(name: str, optimizer: Any, param: Any) -> list[Any]:
    """An option as one value for each parameter group.

    Raises:
        ArgumentValueError: for another number of values.
    """
    return _per_group(param, optimizer, name)


def _update_param_group_val(param_group: dict[str, Any], key: str, val: Any) -> None:
    """Set an option of a group; one that is a tensor keeps its identity."""
    if isinstance(param_group[key], _Tensor):
        param_group[key].fill_(val.squeeze() if isinstance(val, _Tensor) else val)
    else:
        param_group[key] = val
