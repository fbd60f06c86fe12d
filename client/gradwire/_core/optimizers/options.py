"""Options of optimizers: read as numbers, and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import float64
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..session.current_session import get_default_dtype
from ..tensor.tensor import Tensor

INFINITY: Final = float("inf")


def number(value: Any) -> float:
    """An option as a number. A tensor is read once, and again only after it was changed."""
    if not isinstance(value, Tensor):
        return float(value)
    version, known = value.__dict__.get("_number", (None, 0.0))
    if version != value._version:
        known = float(value)
        note_number(value, known)
    return float(known)


def note_number(value: Tensor, known: float) -> None:
    """Remember what a tensor of one element holds."""
    value.__dict__["_number"] = (value._version, known)


def single(value: Any) -> Any:
    """A number as precise as PyTorch's tensors of one number are: float32, unless the default dtype is float64.

    A tensor stays what it is.
    """
    return value if isinstance(value, Tensor) or get_default_dtype() is float64 else float(np.float32(value))


def check_rate(lr: Any, lowest: float = 0.0) -> None:
    """Check a learning rate: a number from ``lowest`` up, or a tensor of one element."""
    if isinstance(lr, Tensor):
        if lr.numel() != 1:
            raise ArgumentValueError(f"a learning rate is one number, not a tensor of shape {list(lr.shape)}")
    else:
        check_ranges(lr=(lr, lowest, INFINITY))


def check_ranges(**options: tuple[float, float, float]) -> None:
    """Check options given as (value, lower bound, upper bound); the upper one is excluded.

    Raises:
        ArgumentValueError: naming the option, its value and the range.
    """
    for name, (value, low, high) in options.items():
        if not isinstance(value, Tensor) and not low <= value < high:
            limit = f"at least {low}" if high == INFINITY else f"in [{low}, {high})"
            raise ArgumentValueError(f"{name} must be {limit}, not {value}")


def check_flags(options: Mapping[str, Any]) -> None:
    """Refuse the flags that PyTorch refuses together; a step is one record whatever they say.

    Raises:
        ArgumentError: for ``fused`` with another way of computing a step.
    """
    for other in ("differentiable", "foreach"):
        if options.get("fused") and options.get(other):
            raise ArgumentError(f"fused and {other} exclude each other")


def check_fused(group: dict[str, Any], params: list[Tensor]) -> None:
    """Refuse complex parameters for a fused step, as PyTorch does.

    Raises:
        ArgumentError: naming the parameter's dtype.
    """
    for param in params if group.get("fused") else ():
        if not param.is_floating_point():
            raise ArgumentError(f"fused=True needs real parameters, one is {param.dtype.name}")


def betas_of(betas: Iterable[float]) -> tuple[float, float]:
    """Two decay rates, checked.

    Raises:
        ArgumentValueError: when there are not two, or one is outside [0, 1).
    """
    pair = tuple(betas)
    if len(pair) != 2:
        raise ArgumentValueError(f"betas are two numbers, not {pair}")
    for i, beta in enumerate(pair):
        if not 0.0 <= number(beta) < 1.0:
            raise ArgumentValueError(f"betas[{i}] must be in [0, 1), not {beta}")
    return pair
