"""A schedule that goes up and down between two rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ..optimizer import Optimizer
from .annealing import set_momentum
from .schedule import LRScheduler, per_group, set_rate

MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """From ``base_lr`` to ``max_lr`` in ``step_size_up`` steps, back in ``step_size_down``, and again (Smith 2017).

    It is stepped after every batch. Momentum goes the other way.

    Args:
        base_lr, max_lr: one number or one per group.
        step_size_down: as many as up, unless given.
        mode: the height of a cycle: always the same (``"triangular"``), half that of the one before
            (``"triangular2"``), or falling by ``gamma`` a step (``"exp_range"``).
        scale_fn: a function for the height instead, of the cycle or of the step as ``scale_mode`` says.
        cycle_momentum: change momentum (or the first beta) between ``max_momentum`` and ``base_momentum``, too.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"a schedule is for an optimizer, not for {type(optimizer).__name__}")
        if mode not in MODES and scale_fn is None:
            raise ArgumentValueError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
        lows = per_group(base_lr, optimizer, "base_lr")
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                set_rate(group, low)
        self.max_lrs = per_group(max_lr, optimizer, "max_lr")
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def _prepare_momentum(self, optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> None:
        if not ({"momentum", "betas"} & set(optimizer.defaults)):
            raise ArgumentValueError("cycle_momentum needs an optimizer with momentum or betas")
        self.base_momentums = per_group(base, optimizer, "base_momentum")
        self.max_momentums = per_group(top, optimizer, "max_momentum")
        if last_epoch == -1:
            for group, low, high in zip(
                optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):  # fmt: skip
                set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _height(self, at: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(at)
        if self.mode == "triangular2":
            return float(1 / 2.0 ** (at - 1))
        return float(self.gamma**at) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        turns = self.last_epoch / self.total_size
        cycle = math.floor(1 + turns)
        share = 1 + turns - cycle
        rise = share / self.step_ratio if share <= self.step_ratio else (share - 1) / (self.step_ratio - 1)
        rise *= self._height(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):  # fmt: skip
                set_momentum(group, high - (high - low) * rise)
        return [low + (high - low) * rise for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer. Of a function that is an object, its attributes."""
        own = self.scale_fn
        kept = None if own is None or isinstance(own, FunctionType) else dict(vars(own))
        rest = {name: value for name, value in super().state_dict().items() if name != "scale_fn"}
        return rest | {"_scale_fn_custom": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave."""
        own = dict(state_dict)
        kept = own.pop("_scale_fn_custom", None)
        super().load_state_dict(own)
        if kept is not None and self.scale_fn is not None:
            vars(self.scale_fn).update(kept)
