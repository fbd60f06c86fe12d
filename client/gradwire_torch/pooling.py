"""Pooling, and putting maxima back."""

from __future__ import annotations

from typing import Any

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes


@computes("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(self: Any, output_size: Any) -> Any:
    return gw.nn.functional.adaptive_avg_pool2d(self, tuple(output_size))


@computes("_adaptive_avg_pool3d")
def adaptive_avg_pool3d(self: Any, output_size: Any) -> Any:
    return gw.nn.functional.adaptive_avg_pool3d(self, tuple(output_size))


@computes("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(grad_output: Any, self: Any) -> Any:
    return call("adaptive_avg_pool_backward", grad_output, tuple(self.shape[-2:]))


@computes("_adaptive_avg_pool3d_backward")
def adaptive_avg_pool3d_backward(grad_output: Any, self: Any) -> Any:
    return call("adaptive_avg_pool_backward", grad_output, tuple(self.shape[-3:]))


def _from_indices(grad_output: Any, self: Any, indices: Any, count: int) -> Any:
    """The gradient of a maximum pool: each maximum's goes to where it was found."""
    lead = tuple(self.shape[: self.ndim - count])
    extent = 1
    for size in self.shape[self.ndim - count :]:
        extent *= size
    shape = (*lead, -1) if grad_output.numel() else (*lead, 0)
    flat = grad_output.new_zeros((*lead, extent))
    found = flat.scatter_add(-1, indices.reshape(shape), grad_output.reshape(shape))
    return found.reshape(tuple(self.shape))


@computes("max_pool2d_with_indices_backward")
def max_pool2d_backward(
    grad_output: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Any,
) -> Any:  # fmt: skip
    return _from_indices(grad_output, self, indices, 2)


@computes("max_pool3d_with_indices_backward")
def max_pool3d_backward(
    grad_output: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Any,
) -> Any:  # fmt: skip
    return _from_indices(grad_output, self, indices, 3)


@computes("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(grad_output: Any, self: Any, indices: Any) -> Any:
    return _from_indices(grad_output, self, indices, 2)


@computes("adaptive_max_pool3d_backward")
def adaptive_max_pool3d_backward(grad_output: Any, self: Any, indices: Any) -> Any:
    return _from_indices(grad_output, self, indices, 3)


@computes("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(self: Any, kernel_size: Any, output_size: Any, random_samples: Any) -> Any:
    return call("fractional_max_pool", self, random_samples, tuple(kernel_size), tuple(output_size))


@computes("fractional_max_pool2d_backward")
def fractional_max_pool2d_backward(
    grad_output: Any, self: Any, kernel_size: Any, output_size: Any, indices: Any
) -> Any:
    return _from_indices(grad_output, self, indices, 2)


@computes("fractional_max_pool3d_backward")
def fractional_max_pool3d_backward(
    grad_output: Any, self: Any, kernel_size: Any, output_size: Any, indices: Any
) -> Any:
    return _from_indices(grad_output, self, indices, 3)


@computes("max_unpool2d", "max_unpool3d")
def max_unpool(self: Any, indices: Any, output_size: Any, stride: Any = None, padding: Any = None) -> Any:
    return call("max_unpool", self, indices, tuple(output_size))
