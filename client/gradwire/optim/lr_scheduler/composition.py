"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ..optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .schedule import LRScheduler, set_rate


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
