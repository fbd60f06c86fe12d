"""A schedule that follows a measurement."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ..optimizer import Optimizer
from .schedule import LRScheduler, per_group


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
        self.min_lrs = per_group(min_lr, optimizer, "min_lr")
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._current()
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction was so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def is_better(self, measured: float, best: float) -> bool:
        """Whether a measurement improves on the best one by the threshold."""
        sign = 1.0 if self.mode == "min" else -1.0
        margin = self.threshold * best if self.threshold_mode == "rel" else self.threshold
        return sign * measured < sign * best - margin * (sign if self.threshold_mode == "rel" else 1.0)

    def step(self, metrics: Any = None, epoch: Any = None) -> None:  # type: ignore[override]
        """Take a measurement of this epoch, a number or a tensor of one element, into account."""
        measured = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if math.isinf(self.best) or self.is_better(measured, self.best):
            better = self.is_better(measured, self.best) if not math.isinf(self.best) else measured == measured
            self.best, self.num_bad_epochs = (measured, 0) if better else (self.best, self.num_bad_epochs + 1)
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
        for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            reduced = max(group["lr"] * self.factor, low)
            if group["lr"] - reduced > self.eps:
                group["lr"] = reduced
