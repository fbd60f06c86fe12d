"""Rounding to a grid as quantization would, in floating point."""

from __future__ import annotations

from typing import Any

import gradwire as gw

from .dispatch import computes


def _rounded(self: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    """The nearest points of the grid, and which elements are within its range."""
    places = (self / scale).round() + zero_point
    return (
        ((places.clamp(quant_min, quant_max) - zero_point) * scale).to(self.dtype),
        (places >= quant_min) & (places <= quant_max),
    )


@computes("fake_quantize_per_tensor_affine_cachemask")
def per_tensor(self: Any, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Any:
    return _rounded(self, scale, zero_point, quant_min, quant_max)


@computes("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def per_tensor_by_tensors(
    self: Any, scale: Any, zero_point: Any, fake_quant_enabled: Any, quant_min: int, quant_max: int
) -> Any:
    """Only where it is enabled."""
    found, within = _rounded(self, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)
    enabled = fake_quant_enabled.reshape(()) != 0
    return gw.where(enabled, found, self), within | ~enabled


@computes("fake_quantize_per_channel_affine_cachemask")
def per_channel(self: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int) -> Any:
    """A grid for each place along a dimension."""
    shape = [1] * self.ndim
    shape[axis] = -1
    return _rounded(self, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)
