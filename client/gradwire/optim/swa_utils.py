"""``torch.optim.swa_utils``: averages of weights along a training run, and the schedule that goes with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from .._core.context.argument_types import Device
from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.modules.state import _IncompatibleKeys
from .._core.optimizers.optimizer import Optimizer
from .._core.optimizers.options import number
from .._core.surface.creation import tensor
from .._core.tensor.tensor import Tensor
from ..nn.normalization import _BatchNorm
from .lr_scheduler.schedule import LRScheduler, per_group

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def _decay(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ArgumentValueError(f"decay is from 0 to 1, not {decay}")
    return decay


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that moves a list of averages towards a list of parameters by the share ``1 - decay``."""
    share = 1 - _decay(decay)

    def ema_update(averages: list[Any], current: list[Any], number_averaged: Any) -> None:
        with no_grad():
            for average, parameter in zip(averages, current, strict=True):
                if average.is_floating_point() or average.is_complex():
                    call("add_", average, call("sub", parameter, average), alpha=share)
                else:
                    call("copy_", average, call("add", average * decay, parameter * share))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that takes a list of parameters into a list of their equally weighted averages."""

    def swa_update(averages: list[Any], current: list[Any], number_averaged: Any) -> None:
        with no_grad():
            share = 1 / (number_averaged + 1)
            for average, parameter in zip(averages, current, strict=True):
                if average.is_floating_point() or average.is_complex():
                    change = call("sub", parameter, average)
                    call("add_", average, change * (share.to(change) if isinstance(share, Tensor) else share))
                else:
                    call("add_", average, call("div", parameter - average, number_averaged + 1, rounding_mode="trunc"))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """A function of an average, a parameter and a count that gives the average's next exponential value."""
    share = 1 - _decay(decay)

    def ema_update(average: Any, current: Any, number_averaged: Any) -> Any:
        with no_grad():
            return decay * average + share * current

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """A function of an average, a parameter and a count that gives the next equally weighted average."""

    def swa_update(average: Any, current: Any, number_averaged: Any) -> Any:
        with no_grad():
            return average + (current - average) / (number_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the calls of :meth:`update_parameters`.

    Args:
        model: what is averaged. It is copied.
        device: where the averages live; by default where the parameters do.
        avg_fn: computes the next average of one parameter from the average, the parameter and the count.
        multi_avg_fn: changes a list of averages in place, given a list of parameters and the count.
        use_buffers: average the buffers, too, instead of copying them.

    Attributes:
        module: the averaged copy.
        n_averaged: how often :meth:`update_parameters` was called.
    """

    n_averaged: Any

    def __init__(
        self, model: Module, device: Device = None, avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("avg_fn and multi_avg_fn exclude each other")
        self.module: Module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self._count: int | None = 0
        self.avg_fn: Callable[..., Any] | None = avg_fn
        self.multi_avg_fn: Callable[..., None] | None = multi_avg_fn
        self.use_buffers: bool = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Load averages and count."""
        self._count = None
        return super().load_state_dict(state_dict, strict, assign)

    def _parts(self, model: Module) -> list[Any]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of ``model`` into the averages: the first time as they are."""
        if self._count is None:  # it was loaded
            self._count = int(self.n_averaged)
        averages = [p.detach() for p in self._parts(self.module)]
        current = [p.detach().to(a.device) for p, a in zip(self._parts(model), averages, strict=True)]
        with no_grad():
            if self._count == 0:
                for average, parameter in zip(averages, current, strict=True):
                    call("copy_", average, parameter)
            elif self.avg_fn is not None:
                for average, parameter in zip(averages, current, strict=True):
                    call("copy_", average, self.avg_fn(average, parameter, self.n_averaged.to(average.device)))
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, current, self.n_averaged)
            else:
                get_swa_multi_avg_fn()(averages, current, self._count)
            if not self.use_buffers:
                for kept, new in zip(self.module.buffers(), model.buffers(), strict=True):
                    call("copy_", kept.detach(), new.detach().to(kept.device))
            call("add_", self.n_averaged, 1)
        self._count += 1


def update_bn(loader: Iterable[Any], model: Module, device: Device = None) -> None:
    """Compute the running statistics of a model's batch norms anew, from one pass over ``loader``.

    Each entry of ``loader`` is a batch, or a list or tuple whose first entry is one.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    before = {m: m.momentum for m in norms}
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the average of all batches, equally weighted
    with no_grad():
        for entry in loader:
            batch = entry[0] if isinstance(entry, (list, tuple)) else entry
            model(batch if device is None else batch.to(device))
    for norm, momentum in before.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rate in force to ``swa_lr`` in ``anneal_epochs``, then constant.

    Args:
        swa_lr: the last rate; one number or one per group.
        anneal_strategy: ``"cos"`` or ``"linear"``.
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | Sequence[float], anneal_epochs: int = 10,
        anneal_strategy: str = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"a schedule is for an optimizer, not for {type(optimizer).__name__}")
        for group, rate in zip(optimizer.param_groups, per_group(swa_lr, optimizer, "swa_lr"), strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentValueError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentValueError(f"anneal_epochs is an int of at least 0, not {anneal_epochs!r}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs: int = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        """How much of the way is behind at an epoch, from 0 to 1."""
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        step = max(self._step_count - 1, self.anneal_epochs == 0)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target, rate = number(group["swa_lr"]), number(group["lr"])
            # The rate it started from follows from the last one, unless that was the end already.
            start = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(start * (1 - now) + target * now)
        return rates
