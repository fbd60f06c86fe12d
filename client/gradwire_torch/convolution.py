"""Convolutions and their derivatives."""

from __future__ import annotations

from typing import Any

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes


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
