"""Weight normalization: a weight as a length and a direction, each trained for itself.

Salimans and Kingma, "Weight Normalization" (2016). This is the older form, which sets the weight before each forward;
:func:`gradwire.nn.utils.parametrizations.weight_norm` is the newer one.
"""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..._core.composed.statistics import norm_except_dim
from ..._core.context.call_sites import user_depth
from ..._core.dispatch.dispatch import call
from ..._core.modules.module import Module, SomeModule
from ..._core.modules.parameter import Parameter
from ..._core.tensor.tensor import Tensor
from .spectral_normalization import hook_of


def normed(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """``v`` with its norms, all over but one dimension, made ``g``."""
    return call("mul", v, call("div", g, norm_except_dim(v, 2, dim)))


class WeightNorm:
    """A hook before forward that computes the weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name: str = name
        self.dim: int = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight from its direction and length."""
        return normed(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: SomeModule, name: str = "weight", dim: int | None = 0) -> SomeModule:
    """Train a weight as its length ``{name}_g`` and its direction ``{name}_v``; returns the module.

    Args:
        dim: which dimension has lengths of its own; None has one length for all.
    """
    warnings.warn(
        "nn.utils.weight_norm is deprecated, use nn.utils.parametrizations.weight_norm",
        FutureWarning,
        stacklevel=user_depth(),
    )
    if hook_of(module, WeightNorm, name) is not None:
        raise ArgumentError(f"{name!r} has weight normalization already")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight.detach(), 2, hook.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: SomeModule, name: str = "weight") -> SomeModule:
    """Make the weight one parameter again; returns the module.

    Raises:
        ArgumentValueError: when it is not normalized.
    """
    number = hook_of(module, WeightNorm, name)
    if number is None:
        raise ArgumentValueError(f"{name!r} of {type(module).__name__} has no weight normalization")
    hook = module._forward_pre_hooks.pop(number)
    weight = hook.compute_weight(module).detach()
    delattr(module, name)
    del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
    setattr(module, name, Parameter(weight))
    return module


__all__ = ["WeightNorm", "norm_except_dim", "remove_weight_norm", "weight_norm"]
