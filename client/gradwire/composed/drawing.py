"""Random numbers that follow parameters: normal ones of any mean, gamma and Dirichlet variates."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from ..creation import finish, place
from ..dispatch import call
from ..generator import takes_generator
from ..methods import offer
from ..outputs import accepts_out
from ..tensor import Tensor


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Normal random numbers: of tensors of means and deviations, or of numbers and a size.

    The gradients of tensors are zero: to learn them, compute ``mean + std * randn(...)``.
    """
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise ArgumentTypeError("normal of numbers needs a size")
        return finish(call("normal", mean, std, tuple(size), dtype, place(device)), requires_grad)
    if isinstance(mean, Tensor) and isinstance(std, Tensor) and std.dtype is not mean.dtype:
        std = std.to(mean.dtype)
    return call("normal", mean, std)


def _standard_gamma(self: Tensor) -> Any:
    """Gamma variates of rate 1 for a tensor of concentrations; gradients follow the quantiles."""
    return call("standard_gamma", self)


def _sample_dirichlet(self: Tensor) -> Any:
    """Dirichlet variates for concentrations along the last dimension, with gradients."""
    return call("sample_dirichlet", self)


for _function in (normal, _standard_gamma, _sample_dirichlet):
    offer(takes_generator(accepts_out(_function)), method=False)
