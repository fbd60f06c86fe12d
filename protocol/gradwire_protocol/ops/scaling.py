"""Gradient scaling for training in float16: gradients are checked and scaled, and the scale follows, on the server."""

from __future__ import annotations

from ..dtypes import INTEGRAL, float32
from ..errors import ArgumentError
from ..meta import Inference, new, nothing
from ..table import Float, Tensor, op


@op(control=True, after_backward=True, exposed=())
def unscale_gradients(params: list[Tensor], scale: Tensor) -> Inference:
    """Divide the gradients of these tensors by ``scale``, in place; returns 1 as float32 if some element of one was
    infinite or NaN before, else 0."""
    if scale.numel != 1 or not scale.dtype.is_floating_point:
        raise ArgumentError(f"unscale_gradients: the scale is one floating point number, not {scale!r}")
    return new((), float32, scale.device)


@op(control=True, after_backward=True, results=0, exposed=())
def update_scale(
    scale: Tensor,
    growth_tracker: Tensor,
    found_infs: list[Tensor],
    growth_factor: Float = 2.0,
    backoff_factor: Float = 0.5,
    growth_interval: Float = 2000,
) -> Inference:
    """Times ``backoff_factor`` where one of ``found_infs`` is not 0; times ``growth_factor``, unless that overflows,
    after ``growth_interval`` updates without, which ``growth_tracker`` counts. Both are changed in place."""
    if scale.numel != 1 or growth_tracker.numel != 1:
        raise ArgumentError("update_scale: scale and growth_tracker are one number each")
    if not scale.dtype.is_floating_point or growth_tracker.dtype.category != INTEGRAL:
        raise ArgumentError(f"update_scale: the scale is a floating point number, the count an integer, not {scale!r}")
    return nothing()
