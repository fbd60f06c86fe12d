"""The base of all schedules."""

from __future__ import annotations

import warnings
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ...modes import no_grad
from ...tensor import Tensor
from ..optimizer import Optimizer, note_number, number

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
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[Any] = []
        self._steps_elsewhere = "step" in vars(optimizer)
        self._begin()

    def get_lr(self) -> list[Any]:
        """The learning rates at ``last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The learning rates that were set last."""
        return self._last_lr

    def step(self, epoch: Any = None) -> None:
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
