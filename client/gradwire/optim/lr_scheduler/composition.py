"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from ..optimizer import Optimizer
from .schedule import LRScheduler


class SequentialLR(LRScheduler):
    """Several schedules, one after the other; each milestone is the epoch at which the next begins."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise ArgumentValueError(
                f"{len(schedulers)} schedules need one milestone less than that, there are {len(milestones)}"
            )
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ArgumentValueError("all schedules must be for the same optimizer")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # Making the schedules has applied the first rates of all of them: begin again with those of the first alone.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._schedulers[0]._enter(self._schedulers[0].last_epoch)
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: Any = None) -> None:
        """Go on by one."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            for group in self.optimizer.param_groups:
                group["lr"] = group["initial_lr"]
            scheduler._enter(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

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


class ChainedScheduler(LRScheduler):
    """Several schedules at once: each changes the rates that the one before it left."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ArgumentValueError("ChainedScheduler needs at least one schedule")
        self.optimizer = optimizer or schedulers[0].optimizer
        if any(s.optimizer is not self.optimizer for s in schedulers):
            raise ArgumentValueError("all schedules must be for the same optimizer")
        self._schedulers = list(schedulers)
        self._last_lr = self._current()

    def step(self, epoch: Any = None) -> None:
        """Go on by one with each."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict
