"""Schedules that multiply the rate: every epoch, at some epochs, or as a function says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from ..optimizer import Optimizer
from .schedule import LRScheduler, per_group


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
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
        self.step_size = step_size
        self.gamma = gamma
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
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        times = self.milestones.get(self.last_epoch, 0)
        return self._scaled(self.gamma**times) if times else self._current()

    def _closed_form(self) -> list[Any]:
        return self._from_base(self.gamma ** sum(n for epoch, n in self.milestones.items() if epoch <= self.last_epoch))


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
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
        self.factor = factor
        self.total_iters = total_iters
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
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
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
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left = self.total_iters - self.last_epoch
        return self._scaled((left / (left + 1)) ** self.power)

    def _closed_form(self) -> list[Any]:
        return self._from_base((1 - min(self.last_epoch, self.total_iters) / self.total_iters) ** self.power)
