"""Learning rate schedules: what all of them have, several in a row, and the one that watches a metric."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, SupportsFloat

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..._core.context.modes import no_grad
from ..._core.optimizers.optimizer import Optimizer
from ..._core.optimizers.options import note_number, number
from ..._core.session.kept_objects import ATTRIBUTES, KEEPERS
from ..._core.tensor.tensor import Tensor

EPOCH_DEPRECATION_WARNING: Final = "step(epoch) of a schedule is deprecated: call step() once per epoch"


class LRScheduler:
    """The base of all schedules. Making one sets the first learning rates; :meth:`step` sets the next.

    A subclass defines ``get_lr``: the learning rates, one per group, at ``last_epoch``.

    Attributes:
        base_lrs: the learning rates that the schedule starts from, one per group.
        last_epoch: how many steps were taken.
    """

    _is_initial = False
    """Whether the first rates are being set, those that the schedule begins with."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"a schedule is for an optimizer, not for {type(optimizer).__name__}")
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"group {i} has no 'initial_lr', which resuming at epoch {last_epoch} needs")
        self.optimizer: Optimizer = optimizer
        self.base_lrs: list[Any] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch: int = last_epoch
        self._last_lr: list[float | Tensor] = []
        self._steps_elsewhere = "step" in vars(optimizer)
        self._begin()

    def get_lr(self) -> list[Any]:
        """The learning rates at ``last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self) -> list[float | Tensor]:
        """The learning rates that were set last."""
        return self._last_lr

    def step(self, epoch: float | None = None) -> None:
        """Go on by one and set the learning rates; or, which is deprecated, go to ``epoch``, by the closed form of the
        schedule where it has one."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if "step" in vars(self.optimizer) and not self._steps_elsewhere:
            warnings.warn(
                "optimizer.step was replaced after the schedule was made: whether it was called before the schedule's "
                "step(), as it should be, is not known",
                UserWarning,
                stacklevel=3,
            )
        elif not self.optimizer._has_stepped:
            warnings.warn(
                "the schedule goes on before the optimizer took a step: call optimizer.step() first, or the first rate "
                "is never used",
                UserWarning,
                stacklevel=3,
            )

    _closed_form: Any = None
    """The rates at ``last_epoch`` from the initial ones alone, for schedules that have such a form."""

    def _begin(self) -> None:
        """Set the first rates: those of the epoch after ``last_epoch``, which are taken to be in force."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _update_lr(self, epoch: Any = None) -> None:
        """Go to an epoch, by default the next one, and set its rates."""
        rates = self.get_lr
        if epoch is None:
            self.last_epoch += 1
        else:
            self.last_epoch = epoch
            rates = getattr(self, "_get_closed_form_lr", None) or self._closed_form or rates
        self._set(rates())

    def _set(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = list(rates)

    def _current(self) -> list[Any]:
        return [number(group["lr"]) for group in self.optimizer.param_groups]

    def _from_base(self, factor: float) -> list[Any]:
        """The initial rates times a factor."""
        return [base * factor for base in self.base_lrs]

    def _scaled(self, factor: float) -> list[Any]:
        """The rates in force times a factor: what somebody set by hand is taken on from there."""
        return [rate * factor for rate in self._current()]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; functions are left out, too."""
        own = ("optimizer", "_steps_elsewhere")
        return {k: v for k, v in self.__dict__.items() if k not in own and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave."""
        self.__dict__.update(state_dict)


@contextmanager
def _enable_get_lr_call(o: Any) -> Iterator[Any]:
    """Inside, ``get_lr`` of a schedule knows that it is called by its step."""
    o._get_lr_called_within_step = True
    try:
        yield o
    finally:
        o._get_lr_called_within_step = False


def _warn_get_lr_called_within_step(lr_scheduler: Any) -> None:
    if not getattr(lr_scheduler, "_get_lr_called_within_step", True):
        warnings.warn("get_last_lr() tells the rate of the last step", UserWarning, stacklevel=2)


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Set a group's learning rate; a tensor stays and is written to."""
    lr = group["lr"]
    if isinstance(lr, Tensor):
        known = number(rate)
        with no_grad():
            lr.fill_(known)
        note_number(lr, known)
    else:
        group["lr"] = rate


def per_group(value: Any, optimizer: Optimizer, what: str) -> list[Any]:
    """``value`` as a list with an entry for each group.

    Raises:
        ArgumentValueError: for a list of another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ArgumentValueError(f"{what} has {len(value)} entries, there are {count} parameter groups")
    return list(value)


def _check(schedulers: Sequence[Any], optimizer: Optimizer | None) -> Optimizer:
    """The optimizer that all of some schedules are for.

    Raises:
        ArgumentValueError: for none, for those of different optimizers, and for one that needs measurements.
        ArgumentTypeError: for what is no schedule.
    """
    if not schedulers:
        raise ArgumentValueError("a schedule of schedules needs at least one")
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise ArgumentTypeError(f"entry {i} is no schedule but {type(scheduler).__name__}: it has no optimizer")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ArgumentValueError(f"entry {i} is ReduceLROnPlateau, whose step takes a measurement")
        optimizer = optimizer or scheduler.optimizer
        if scheduler.optimizer is not optimizer:
            raise ArgumentValueError(f"all schedules must be for the same optimizer, entry {i} is for another")
    assert optimizer is not None
    return optimizer


def _take_back(scheduler: Any) -> None:
    """Let schedules, and those within them, be where they were before their first step."""
    for inner in getattr(scheduler, "_schedulers", ()):
        if hasattr(inner, "_schedulers"):
            _take_back(inner)
        elif hasattr(inner, "last_epoch"):
            inner.last_epoch -= 1


class _Composed(LRScheduler):
    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """The state of all schedules."""
        own = {k: v for k, v in super().state_dict().items() if k != "_schedulers"}
        return own | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave."""
        own = dict(state_dict)
        for scheduler, saved in zip(self._schedulers, own.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(saved)
        super().load_state_dict(own)


class SequentialLR(_Composed):
    """Several schedules, one after the other; each milestone is the epoch at which the next begins."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        _check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentValueError(
                f"{len(schedulers)} schedules need one milestone less than that, there are {len(milestones)}"
            )
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # Making the schedules has applied the first rates of all of them: begin again with those of one alone.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        _take_back(self)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._begin()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go on by one."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules at once: each changes the rates that the one before it left."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.optimizer = _check(schedulers, optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = self._current()

    def step(self) -> None:  # type: ignore[override]
        """Go on by one with each."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()


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
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | Sequence[float] = 0, eps: float = 1e-8,
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
        self.mode: str = mode
        self.factor: float = factor
        self.patience: int = patience
        self.threshold: float = threshold
        self.threshold_mode: str = threshold_mode
        self.cooldown: int = cooldown
        self.default_min_lr: float | Sequence[float] | None = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs: list[Any] = per_group(min_lr, optimizer, "min_lr")
        self.eps: float = eps
        self.last_epoch = 0
        self._last_lr = self._current()
        self.mode_worse: float = math.inf if mode == "min" else -math.inf
        self._reset()

    def _reset(self) -> None:
        """Forget all measurements."""
        self.best: float = self.mode_worse
        self.num_bad_epochs: int = 0
        self.cooldown_counter: int = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction was so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def is_better(self, measured: float, best: float) -> bool:
        """Whether a measurement improves on the best one by the threshold."""
        if self.mode == "min":
            return measured < (best * (1 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold)
        return measured > (best * (1 + self.threshold) if self.threshold_mode == "rel" else best + self.threshold)

    def step(self, metrics: SupportsFloat, epoch: float | None = None) -> None:  # type: ignore[override]
        """Take a measurement of this epoch, a number or a tensor of one element, into account."""
        measured = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch  # type: ignore[assignment]
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


KEEPERS[LRScheduler] = ATTRIBUTES
