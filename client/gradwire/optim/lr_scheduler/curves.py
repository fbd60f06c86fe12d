"""Schedules that follow a curve: decay, annealing, cycles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ..._core.optimizers.optimizer import Optimizer
from .schedule import LRScheduler, per_group, set_rate


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas: list[Callable[[int], float]] = per_group(lr_lambda, optimizer, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer. Of functions that are objects, their attributes; of others None."""
        kept = [None if isinstance(f, FunctionType) else dict(vars(f)) for f in self.lr_lambdas]
        return super().state_dict() | {"lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave."""
        own = dict(state_dict)
        kept = own.pop("lr_lambdas", [])
        super().load_state_dict(own)
        for function, attributes in zip(self.lr_lambdas, kept, strict=False):
            if attributes is not None:
                vars(function).update(attributes)


class MultiplicativeLR(LambdaLR):
    """The last rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self._current()
        return [rate * f(self.last_epoch) for rate, f in zip(self._current(), self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size: int = step_size
        self.gamma: float = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma) if due else self._current()

    def _closed_form(self) -> list[Any]:
        return self._from_base(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of some epochs."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones: Counter[int] = Counter(milestones)
        self.gamma: float = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        times = self.milestones.get(self.last_epoch, 0)
        return self._scaled(self.gamma**times) if times else self._current()

    def _closed_form(self) -> list[Any]:
        return self._from_base(self.gamma ** sum(n for epoch, n in self.milestones.items() if epoch <= self.last_epoch))


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma: float = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return self._current() if self._is_initial else self._scaled(self.gamma)

    def _closed_form(self) -> list[Any]:
        return self._from_base(self.gamma**self.last_epoch)


class ConstantLR(LRScheduler):
    """The initial rate times ``factor`` for ``total_iters`` epochs, then without it."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        check_share("factor", factor, zero=True)
        self.factor: float = factor
        self.total_iters: int = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor) if self.last_epoch == self.total_iters else self._current()

    def _closed_form(self) -> list[Any]:
        return self._from_base(self.factor if self.last_epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """The initial rate times a factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_share("start_factor", start_factor)
        check_share("end_factor", end_factor, zero=True)
        self.start_factor: float = start_factor
        self.end_factor: float = end_factor
        self.total_iters: int = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * epoch / self.total_iters

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        return self._scaled(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _closed_form(self) -> list[Any]:
        return self._from_base(self._factor(min(self.last_epoch, self.total_iters)))


def check_share(name: str, value: float, zero: bool = False) -> None:
    """Check that a factor is at most 1 and above 0 (or, with ``zero``, not below)."""
    if value > 1.0 or value < 0 or (value == 0 and not zero):
        raise ArgumentValueError(f"{name} must be {'from' if zero else 'above'} 0 and at most 1, not {value}")


class PolynomialLR(LRScheduler):
    """Down to 0 in ``total_iters`` epochs, as a power of what remains of them."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters: int = total_iters
        self.power: float = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left = self.total_iters - self.last_epoch
        return self._scaled((left / (left + 1)) ** self.power)

    def _closed_form(self) -> list[Any]:
        return self._from_base((1 - min(self.last_epoch, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to ``eta_min`` along half a cosine of ``T_max`` epochs, then back, and so on."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max: int = T_max
        self.eta_min: float = eta_min
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
        self.T_0: int = T_0
        self.T_i: int = T_0
        self.T_mult: int = T_mult
        self.eta_min: float = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
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
        self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
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
        self.total_steps: int = total_steps
        self.anneal_strategy: str = anneal_strategy
        self.cycle_momentum: bool = cycle_momentum
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
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"a schedule is for an optimizer, not for {type(optimizer).__name__}")
        if mode not in MODES and scale_fn is None:
            raise ArgumentValueError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
        lows = per_group(base_lr, optimizer, "base_lr")
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                set_rate(group, low)
        self.max_lrs: list[Any] = per_group(max_lr, optimizer, "max_lr")
        up = float(step_size_up)
        self.total_size: float = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio: float = up / self.total_size
        self.mode: str = mode
        self.gamma: float = gamma
        self.scale_fn: Callable[[float], float] | None = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode: str = scale_mode
        self.cycle_momentum: bool = cycle_momentum
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def _prepare_momentum(self, optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> None:
        if not ({"momentum", "betas"} & set(optimizer.defaults)):
            raise ArgumentValueError("cycle_momentum needs an optimizer with momentum or betas")
        self.base_momentums: list[Any] = per_group(base, optimizer, "base_momentum")
        self.max_momentums: list[Any] = per_group(top, optimizer, "max_momentum")
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
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
            ):
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
