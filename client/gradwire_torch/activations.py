"""Activation functions and their derivatives."""

from __future__ import annotations

from typing import Any, Final

import torch

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes, kernel
from .memory import ours, theirs

_SELU: Final = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@computes("elu")
def elu(self: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    """One kernel of PyTorch's computes ELU, CELU and SELU."""
    if (alpha, scale, input_scale) == (*_SELU, 1):
        return call("selu", self)
    if scale == 1 and input_scale == 1:
        return call("elu", self, alpha)
    if scale == 1 and input_scale * alpha == 1:
        return call("celu", self, alpha)
    return gw.where(self > 0, self, alpha * gw.expm1(self * input_scale)) * scale


@computes("hardtanh_backward")
def hardtanh_backward(grad_output: Any, self: Any, min_val: float, max_val: float) -> Any:
    return call("hardtanh_backward", grad_output, self, min_val, max_val)


@computes("leaky_relu_backward")
def leaky_relu_backward(grad_output: Any, self: Any, negative_slope: float, self_is_result: bool) -> Any:
    return call("leaky_relu_backward", grad_output, self, negative_slope)


@computes("threshold_backward")
def threshold_backward(grad_output: Any, self: Any, threshold: float) -> Any:
    return call("threshold_backward", grad_output, self, threshold)


@computes("gelu_backward")
def gelu_backward(grad_output: Any, self: Any, *, approximate: str = "none") -> Any:
    return call("gelu_backward", grad_output, self, approximate)


@computes("silu_backward")
def silu_backward(grad_output: Any, self: Any) -> Any:
    return call("silu_backward", grad_output, self)


@computes("tanh_backward")
def tanh_backward(grad_output: Any, output: Any) -> Any:
    return call("tanh_backward", grad_output, output)


@computes("sigmoid_backward")
def sigmoid_backward(grad_output: Any, output: Any) -> Any:
    return call("sigmoid_backward", grad_output, output)


@computes("glu_jvp")
def glu_jvp(glu: Any, x: Any, dx: Any, dim: int) -> Any:
    """The derivative of a gated linear unit in a direction."""
    gate = gw.chunk(x, 2, dim)[1].sigmoid()
    along, across = gw.chunk(dx, 2, dim)
    return along * gate + glu * across * (1 - gate)


@computes("_softmax")
def softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    return gw.softmax(self.float() if half_to_float else self, dim)


@computes("_log_softmax")
def log_softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    return gw.log_softmax(self.float() if half_to_float else self, dim)


@computes("_softmax_backward_data")
def softmax_backward(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    return call("softmax_backward", grad_output, output, dim).to(input_dtype)


@computes("_log_softmax_backward_data")
def log_softmax_backward(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    return call("log_softmax_backward", grad_output, output, dim).to(input_dtype)


@kernel("rrelu_with_noise.default", "rrelu_with_noise.out")
def rrelu_with_noise(
    self: torch.Tensor, noise: torch.Tensor, lower: Any = 1 / 8, upper: Any = 1 / 3, training: bool = False,
    generator: Any = None, *, out: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """In training the slopes are drawn, and kept in ``noise``."""
    result, slopes = call("rrelu", ours(self), float(lower), float(upper), training)
    if training:
        ours(noise).copy_(slopes)
    return theirs(result) if out is None else out.copy_(theirs(result))


@kernel("rrelu_with_noise_")
def rrelu_with_noise_(
    self: torch.Tensor, noise: torch.Tensor, lower: Any = 1 / 8, upper: Any = 1 / 3, training: bool = False,
    generator: Any = None,
) -> torch.Tensor:  # fmt: skip
    """In place."""
    ours(self).copy_(ours(rrelu_with_noise(self, noise, lower, upper, training)))
    return self
