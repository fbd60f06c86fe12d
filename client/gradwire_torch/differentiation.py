"""Operations that PyTorch's derivatives are made of, and forward operations that keep something for them."""

from __future__ import annotations

from typing import Any

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes


@computes("threshold_backward")
def threshold_backward(grad_output: Any, self: Any, threshold: float) -> Any:
    return call("threshold_backward", grad_output, self, threshold)


@computes("_softmax")
def _softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    return gw.softmax(self.float() if half_to_float else self, dim)


@computes("_log_softmax")
def _log_softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    return gw.log_softmax(self.float() if half_to_float else self, dim)


@computes("_softmax_backward_data")
def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    return call("softmax_backward", grad_output, output, dim).to(input_dtype)


@computes("_log_softmax_backward_data")
def _log_softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    return call("log_softmax_backward", grad_output, output, dim).to(input_dtype)


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


@computes("embedding_dense_backward")
def embedding_dense_backward(
    grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    return call("embedding_backward", grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)


@computes("embedding")
def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    return gw.nn.functional.embedding(indices, weight)


@computes("convolution_overrideable")
def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    count = weight.ndim - 2
    if transposed:
        function = getattr(gw.nn.functional, f"conv_transpose{count}d")
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(gw.nn.functional, f"conv{count}d")(input, weight, bias, stride, padding, dilation, groups)


@computes("convolution_backward_overrideable")
def convolution_backward(
    grad_output: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, output_mask: Any,
) -> Any:  # fmt: skip
    geometry = tuple(stride), tuple(padding), tuple(dilation), groups
    extents, kernel_size = tuple(input.shape[2:]), tuple(weight.shape[2:])
    to_input, to_weight, to_bias = output_mask
    if transposed:
        found = call("convolution", grad_output, weight, extents, *geometry) if to_input else None
        weights = call("convolution_weight", input, grad_output, kernel_size, *geometry) if to_weight else None
    else:
        found = call("convolution_input", grad_output, weight, extents, *geometry) if to_input else None
        weights = call("convolution_weight", grad_output, input, kernel_size, *geometry) if to_weight else None
    summed = (0, *range(2, grad_output.ndim))
    return found, weights, grad_output.sum(summed) if to_bias else None
