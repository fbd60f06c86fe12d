"""Schedules along a cosine, and the one-cycle policy."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from ..optimizer import Optimizer
from .schedule import LRScheduler, per_group


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to ``eta_min`` along half a cosine of ``T_max`` epochs, then back, and so on."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        epoch, half = self.last_epoch, self.T_max
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and epoch > 0:
            return self._closed_form()
        if (epoch - 1 - half) % (2 * half) == 0:
            # At the bottom the ratio of two neighbours is undefined: start upwards from the rate in force.
            rise = (1 - math.cos(math.pi / half)) / 2
            pairs = zip(self._current(), self.base_lrs, strict=True)
            return [rate + (base - self.eta_min) * rise for rate, base in pairs]
        ratio = (1 + math.cos(math.pi * epoch / half)) / (1 + math.cos(math.pi * (epoch - 1) / half))
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in self._current()]

    def _closed_form(self) -> list[Any]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine of ``T_0`` epochs from the initial rate to ``eta_min``, again and again, ``T_mult`` times as long.

    The epoch that :meth:`step` takes may be a fraction.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ArgumentValueError(f"{name} must be an int of at least 1, not {value!r}")
        if not isinstance(eta_min, (int, float)):
            raise ArgumentValueError(f"eta_min must be a number, not {eta_min!r:.60} of type {type(eta_min).__name__}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Go on by one, or to ``epoch``, which may be a fraction: ``T_cur`` is then the time since the last restart and
        ``T_i`` the period that it is in.

        Raises:
            ArgumentValueError: for a negative epoch.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ArgumentValueError(f"an epoch is a number from 0 on, not {epoch}")
        else:
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())


class OneCycleLR(LRScheduler):
    """Up to ``max_lr``, then down far below where it began, in ``total_steps`` steps; momentum goes the other way.

    It is stepped after every batch. ``epochs`` and ``steps_per_epoch`` may be given instead of ``total_steps``.

    Args:
        pct_start: the share of steps on the way up.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: change momentum (or the first beta) between ``max_momentum`` and ``base_momentum``, too.
        div_factor: the first rate is ``max_lr / div_factor``.
        final_div_factor: the last rate is the first divided by this.
        three_phase: come down to the first rate in as many steps as up, and to the last in those that remain.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ArgumentValueError(f"the number of steps must be a positive int, not {total_steps!r}")
        if not 0 <= pct_start <= 1:
            raise ArgumentValueError(f"pct_start must be between 0 and 1, not {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentValueError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        # (last step, rate at its beginning, at its end, momentum at its beginning, at its end)
        top = float(pct_start * total_steps) - 1
        self._phases: list[tuple[float, str, str, str, str]] = [
            (top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        ]
        if three_phase:
            self._phases.append((2 * top, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            self._phases.append((total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            self._phases.append((total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        self._prepare(optimizer, per_group(max_lr, optimizer, "max_lr"), div_factor, final_div_factor, last_epoch)
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _prepare(
        self, optimizer: Optimizer, tops: list[float], div_factor: float, final_div_factor: float, last_epoch: int
    ) -> None:
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor

    def _prepare_momentum(self, optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> None:
        if not ({"momentum", "betas"} & set(optimizer.defaults)):
            raise ArgumentValueError("cycle_momentum needs an optimizer with momentum or betas")
        lows, highs = per_group(base, optimizer, "base_momentum"), per_group(top, optimizer, "max_momentum")
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
                set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentValueError(f"OneCycleLR was made for {self.total_steps} steps, this is step {step}")
        begin = 0.0
        for phase in self._phases:
            if step <= phase[0] or phase is self._phases[-1]:
                break
            begin = phase[0]
        end, first, last, low, high = phase
        share = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[first], group[last], share))
            if self.cycle_momentum:
                set_momentum(group, self._between(group[low], group[high], share))
        return rates


def set_momentum(group: dict[str, Any], value: float) -> None:
    """Set a group's momentum, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value
