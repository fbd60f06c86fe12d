"""``torch.optim.optimizer``: the base class of optimizers, and hooks of all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from gradwire_protocol.dtypes import DType, float32, float64
from gradwire_protocol.errors import ArgumentError

from .._core.context.modes import MODES, is_grad_enabled, set_grad_enabled
from .._core.dispatch.dispatch import call
from .._core.optimizers.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)
from .._core.session.current_session import get_default_dtype
from .._core.tensor.tensor import Tensor
from ..utils._foreach_utils import _get_foreach_kernels_supported_devices as _get_foreach_kernels_supported_devices
from ..utils._foreach_utils import _get_fused_kernels_supported_devices as _get_fused_kernels_supported_devices
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype as _group_tensors_by_device_and_dtype

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
params_t = _params_t = ParamsT
Args, Kwargs, StateDict, DeviceDict, DeviceDtypeDict = tuple, dict, dict, dict, dict
_foreach_supported_types: list[type] = [Tensor]
_RequiredParameter = type(required)

# What PyTorch's optimizers have in common in their docstrings.
_params_doc = "params: tensors, or pairs of name and tensor, or a dictionary for each group"
_maximize_doc = "maximize (bool): go up the gradient"
_foreach_doc = "foreach (bool): without effect"
_fused_doc = "fused (bool): without effect"
_capturable_doc = "capturable (bool): without effect"
_differentiable_doc = "differentiable (bool): record the step for backward"

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step that is recorded for backward only with the option ``differentiable``."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(is_grad_enabled() and bool(args[0].defaults["differentiable"])):
            return func(*args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that leaves a function as it is: nothing is compiled."""
    return lambda func: func


def _get_value(x: Any) -> Any:
    """A tensor's number."""
    return x.item() if isinstance(x, Tensor) and MODES.capture is None else x


def _stack_if_compiling(x: Any) -> Any:
    """The argument: nothing is compiled."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a number or a tensor."""
    return call("sqrt", x) if isinstance(x, Tensor) else x**0.5


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether an optimizer of a library takes its fused form, and that of lists: only GPUs gain by it."""
    on_gpu = not differentiable and all(p is None or p.device.type == "cuda" for p in params)
    fused = on_gpu and use_fused and all(p is None or p.is_floating_point() for p in params)
    return fused, on_gpu and not fused


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Check that a parameter is of floating point.

    Raises:
        ArgumentError: when it is not.
    """
    if not p.is_floating_point():
        raise ArgumentError(f"fused=True needs parameters of floating point, not {p.dtype!r}")


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put views of pairs of real numbers in the place of complex tensors."""
    for i, p in enumerate(params):
        if p.is_complex():
            for listed in (params, *state_and_grads):
                listed[i] = call("view_as_real", listed[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> DType:
    """The dtype of counts of steps."""
    return float64 if not is_fused and get_default_dtype() is float64 else float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda"]


def _to_scalar(x: Any) -> Any:
    """An option that is a tensor without its extents of one."""
    return call("squeeze", x) if isinstance(x, Tensor) and x.ndim else x
