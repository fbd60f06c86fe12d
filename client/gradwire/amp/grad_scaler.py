"""``GradScaler``: a loss scaled up so that float16 gradients do not vanish, steps skipped where they overflow.

Whether a step is skipped, the server decides: the step's record carries the tensor that tells. The program learns it
with the next value it reads, and settles its own account (how many steps a parameter took) at the next step. So
training with a scaler makes as many round trips as training without.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from inspect import signature
from typing import Any, overload

from gradwire_protocol.dtypes import float16, float32, int32
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.optimizers.optimizer import Optimizer
from .._core.session.kept_objects import ATTRIBUTES, KEEPERS
from .._core.surface.creation import full, tensor
from .._core.surface.server_devices import gpu_count
from .._core.tensor.tensor import NO_GRAD, Tensor


class OptState(Enum):
    """How far an optimizer has come in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Account:
    """One optimizer's iteration."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.stage = OptState.READY
        self.found: Any = None
        self.before: dict[Any, dict[str, Any]] | None = None


class GradScaler:
    """Scales a loss, unscales gradients, skips steps whose gradients are infinite or NaN, and adapts the scale.

    Args:
        device: ``"cuda"`` or ``"cpu"``. For the GPU of a server that has none, the scaler is off.
        init_scale: the first scale.
        growth_factor: the scale grows by it after ``growth_interval`` steps that were not skipped.
        backoff_factor: the scale shrinks by it after one that was.
        enabled: with False, every method does what a program without a scaler does.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device = str(device)
        if enabled and self._device.startswith("cuda") and not gpu_count():
            warnings.warn("the server has no GPU: GradScaler('cuda') is off", UserWarning, stacklevel=2)
            enabled = False
        self._enabled = enabled
        if enabled and growth_factor <= 1.0:
            raise AssertionError(f"growth_factor must be above 1, not {growth_factor}")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError(f"backoff_factor must be below 1, not {backoff_factor}")
        self._init_scale = init_scale
        self._scale: Any = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._accounts: dict[int, _Account] = {}

    # An iteration

    @overload
    def scale(self, outputs: Tensor) -> Tensor: ...
    @overload
    def scale(self, outputs: list[Tensor]) -> list[Tensor]: ...
    @overload
    def scale(self, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]: ...
    @overload
    def scale(self, outputs: Iterable[Tensor]) -> Iterable[Tensor]: ...

    def scale(self, outputs: Any) -> Any:
        """A tensor, or all within an iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ArgumentValueError(f"scale takes a tensor or an iterable of tensors, not {type(outputs).__name__}")

    def _begin(self, device: Any) -> None:
        self._scale = full((), float(self._init_scale), dtype=float32, device=device)
        self._growth_tracker = tensor(self._init_growth_tracker, dtype=int32, device=device)

    def _begun(self, method: str) -> Any:
        if self._scale is None:
            raise AssertionError(f"{method}() is called before scale(): there is nothing to {method.strip('_')}")
        return self._scale

    def _account(self, optimizer: Any) -> _Account:
        return self._accounts.setdefault(id(optimizer), _Account(optimizer))

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to look at them or to clip them.

        :meth:`step` does so where it was not done. It does not wait.

        Raises:
            ArgumentError: the second time in an iteration, and after :meth:`step`.
            ArgumentValueError: for float16 gradients.
        """
        if not self._enabled:
            return
        scale, account = self._begun("unscale_"), self._account(optimizer)
        if account.stage is OptState.UNSCALED:
            raise ArgumentError("unscale_() was called for this optimizer already since the last update()")
        if account.stage is OptState.STEPPED:
            raise ArgumentError("unscale_() is called after step()")
        account.found = self._unscale(optimizer, scale)
        account.stage = OptState.UNSCALED

    def _unscale(self, optimizer: Any, scale: Any) -> Any:
        params = [p for group in optimizer.param_groups for p in group["params"] if p._grad_state != NO_GRAD]
        if any(p._dtype_of_grad() is float16 for p in params):
            raise ArgumentValueError("float16 gradients cannot be unscaled: keep the parameters in float32")
        found = call("unscale_gradients", params, scale) if params else None
        for param in params:
            if param._grad_proxy is not None:
                param._grad_proxy._bump()
        return found

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale if need be, and let the optimizer step unless a gradient is infinite or NaN.

        An optimizer of gradwire's without hooks is skipped on the server, and nothing is read. Others, whose step is
        Python that must not run then, cost one round trip.

        Raises:
            ArgumentError: with a closure, and the second time in an iteration.
            AssertionError: when there was no gradient to check.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("a step with a closure cannot be scaled: its gradients are computed within")
        self._begun("step")
        account = self._account(optimizer)
        if account.stage is OptState.STEPPED:
            raise ArgumentError("step() was called for this optimizer already since the last update()")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_scales(optimizer, account, args, kwargs)
        if account.stage is OptState.READY:
            self.unscale_(optimizer)
        if account.found is None:
            raise AssertionError("no gradient of this optimizer was checked for infinities")
        account.stage = OptState.STEPPED
        if not _is_plain(optimizer) or args or kwargs:
            return None if account.found.item() else optimizer.step(*args, **kwargs)
        optimizer._settle()
        account.before = {p: dict(kept) for p, kept in optimizer.state.items()}
        optimizer._skip = account.found
        try:
            return optimizer.step()
        finally:
            optimizer._skip = None

    def _step_that_scales(
        self, optimizer: Any, account: _Account, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A step of an optimizer that unscales and skips itself: it finds ``grad_scale``, None where gradients are
        unscaled already, and ``found_inf`` among its attributes. An older form takes the scaler as an argument."""
        if "grad_scaler" in signature(optimizer.step).parameters:
            warnings.warn(
                f"{type(optimizer).__name__}.step takes grad_scaler, an old form: read self.grad_scale and "
                "self.found_inf in it",
                FutureWarning,
                stacklevel=3,
            )
            account.stage = OptState.STEPPED
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        scale = self._scale
        if account.stage is OptState.READY:
            account.found = self._unscale(optimizer, full((), 1.0, dtype=float32, device=scale.device))
        optimizer.grad_scale = None if account.stage is OptState.UNSCALED else scale
        optimizer.found_inf = account.found
        account.stage = OptState.STEPPED
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: Tensor | float | None = None) -> None:
        """End the iteration: adapt the scale, or set it to a number or to what a tensor of one element holds."""
        if not self._enabled:
            return
        scale = self._begun("update")
        found = [a.found for a in self._accounts.values() if a.found is not None]
        with no_grad():
            if new_scale is None:
                if not found:
                    raise AssertionError("update() is called before any gradient was checked for infinities")
                call(
                    "update_scale", scale, self._growth_tracker, [f.to(scale.device) for f in found],
                    float(self._growth_factor), float(self._backoff_factor), int(self._growth_interval),
                )  # fmt: skip
                scale._bump()
                self._growth_tracker._bump()
            elif isinstance(new_scale, Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad or new_scale.device.type != scale.device.type:
                    raise AssertionError("new_scale is a number, or a tensor of one on the scaler's device, no leaf")
                scale.copy_(new_scale)
            else:
                scale.fill_(float(new_scale))
        self._settle_later([a for a in self._accounts.values() if a.before is not None])
        self._accounts = {}

    def _settle_later(self, accounts: list[_Account]) -> None:
        """Ask the server which steps it skipped, and let the optimizers take the answer in when it matters."""
        if not accounts:
            return
        answers = accounts[0].found._session.ask([a.found for a in accounts])
        for i, account in enumerate(accounts):
            account.optimizer._unsettled = _settlement(account, answers, i)

    # The scale

    def _get_scale_async(self) -> Any:
        return self._scale

    def get_scale(self) -> float:
        """The scale, 1 where scaling is off. One round trip once there is one on the server."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale) if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """By how much the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose by how much the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By how much the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose by how much the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose after how many steps the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, the factors and the count as Python numbers; nothing where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave.

        Raises:
            ArgumentError: for the empty state of a scaler that was off.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise ArgumentError("the state is empty: it is that of a scaler that was off")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        with no_grad():
            if self._scale is not None:
                self._scale.fill_(self._init_scale)
                self._growth_tracker.fill_(self._init_growth_tracker)


def _is_plain(optimizer: Any) -> bool:
    """Whether a step is records alone, which the server may skip."""
    return (
        isinstance(optimizer, Optimizer)
        and type(optimizer).step is Optimizer.step
        and not optimizer._pre_hooks
        and not optimizer._post_hooks
        and not any(group.get("differentiable") for group in optimizer.param_groups)
    )


def _settlement(account: _Account, answers: Callable[[], list[Any]], i: int) -> Callable[[], None]:
    def settle() -> None:
        if answers()[i]:
            before = account.before or {}
            state = account.optimizer.state
            for param in list(state):
                if param in before:
                    state[param].clear()
                    state[param].update(before[param])
                else:
                    del state[param]

    return settle


KEEPERS[GradScaler] = ATTRIBUTES
