"""Cutting gradients to a length or a range."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..._core.context.call_sites import user_depth
from ..._core.context.modes import no_grad
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import tensor
from ..._core.tensor.tensor import NO_GRAD, Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    entries = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in entries if p._grad_state != NO_GRAD and p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The p-norm of all elements of all tensors, as a 0-dim tensor.

    Args:
        norm_type: the p; may be infinite.
        error_if_nonfinite: raise when the norm is NaN or infinite, which costs a round trip.

    Raises:
        ArgumentError: when it is, and should not be.
    """
    entries = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not entries:
        return tensor(0.0)
    p = float(norm_type)
    with no_grad():
        norms = [call("norm", t, p) for t in entries]
        total = norms[0] if len(norms) == 1 and p else call("norm", call("stack", norms), p)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise ArgumentError(f"the norm of order {p} of these gradients is {total.item()}, not a finite number")
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients so that a norm they were found to have becomes ``max_norm``, unless it is smaller already."""
    found = _gradients(parameters)
    if not found:
        return
    with no_grad():
        factor = call("clamp", call("mul", call("reciprocal", call("add", total_norm, 1e-6)), max_norm), None, 1.0)
        for grad in found:
            call("mul_", grad, factor)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale all gradients by one factor so that their common norm is at most ``max_norm``.

    Returns the norm they had, as a 0-dim tensor. Nothing waits for the server unless ``error_if_nonfinite``.
    """
    entries = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    with_grad = [p for p in entries if p._grad_state != NO_GRAD]
    if not with_grad:
        return tensor(0.0)
    if error_if_nonfinite:
        total = get_total_norm(_gradients(with_grad), norm_type, error_if_nonfinite)
        clip_grads_with_norm_(with_grad, float(max_norm), total)
        return total
    with no_grad():
        total = call("clip_grad_norm_", with_grad, float(max_norm), float(norm_type))
    for param in with_grad:
        if param._grad_proxy is not None:
            param._grad_proxy._bump()
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The older name of :func:`clip_grad_norm_`."""
    warnings.warn("clip_grad_norm is deprecated, it is clip_grad_norm_ now", FutureWarning, stacklevel=user_depth())
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Cut every element of every gradient to the range from ``-clip_value`` to ``clip_value``."""
    limit = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            call("clamp_", grad, -limit, limit)
