"""A schedule that follows a measurement."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..optimizer import Optimizer, number
from .schedule import EPOCH_DEPRECATION_WARNING, LRScheduler, per_group, set_rate


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when a measurement has not improved for more than ``patience`` epochs.

    Args:
        mode: ``"min"`` where lower is better, ``"max"`` where higher is.
        threshold: by how much a measurement must be better to count.
        threshold_mode: whether that is a share of the best (``"rel"``) or an amount (``"abs"``).
        cooldown: epochs after a reduction in which nothing is counted.
        min_lr: no rate goes below this; one number or one per group.
        eps: a change smaller than this is not made.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ArgumentValueError(f"factor must be below 1, not {factor}")
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"a schedule is for an optimizer, not for {type(optimizer).__name__}")
        if mode not in ("min", "max"):
            raise ArgumentValueError(f"mode is 'min' or 'max', not {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentValueError(f"threshold_mode is 'rel' or 'abs', not {threshold_mode!r}")
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = per_group(min_lr, optimizer, "min_lr")
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._current()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._reset()

    def _reset(self) -> None:
        """Forget all measurements."""
        self.best = self.mode_worse
        self.num_bad_epochs = 0
        self.cooldown_counter = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction was so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def is_better(self, measured: float, best: float) -> bool:
        """Whether a measurement improves on the best one by the threshold."""
        if self.mode == "min":
            return measured < (best * (1 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold)
        return measured > (best * (1 + self.threshold) if self.threshold_mode == "rel" else best + self.threshold)

    def step(self, metrics: Any, epoch: Any = None) -> None:  # type: ignore[override]
        """Take a measurement of this epoch, a number or a tensor of one element, into account."""
        measured = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(measured, self.best):
            self.best, self.num_bad_epochs = measured, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._current()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ArgumentError(
                    f"min_lr was given for {len(self.min_lrs)} groups, the optimizer has {len(groups)} by now: extend "
                    "min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            rate = number(group["lr"])
            reduced = max(rate * self.factor, low)
            if rate - reduced > self.eps:
                set_rate(group, reduced)
