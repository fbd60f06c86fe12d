"""A layer and the batch normalization after it as one layer, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from ..._core.dispatch.dispatch import call
from ..._core.modules.module import Module, SomeModule
from ..._core.modules.parameter import Parameter
from ..._core.surface.creation_like import ones_like, zeros_like
from ..._core.tensor.tensor import Tensor


def _evaluating(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("only layers that evaluate can be fused: call eval() first")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("a batch normalization without running statistics cannot be fused")


def fuse_conv_bn_eval(conv: SomeModule, bn: Module, transpose: bool = False) -> SomeModule:
    """A copy of a convolution that also does what the batch normalization after it does.

    Args:
        transpose: the convolution is a transposed one.
    """
    _evaluating(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the convolution that :func:`fuse_conv_bn_eval` makes. None is 0 for a bias, 1 for a scale."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: SomeModule, bn: Module) -> SomeModule:
    """A copy of a linear layer that also does what the batch normalization after it does.

    Raises:
        AssertionError: when the normalization has neither as many channels as the layer, nor one.
    """
    _evaluating(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(f"{linear.out_features} features cannot be normalized as {bn.num_features} channels")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the linear layer that :func:`fuse_linear_bn_eval` makes."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(
    weight: Any, bias: Any, mean: Tensor, var: Tensor, eps: float, scale: Any, shift: Any, dim: int
) -> tuple[Parameter, Parameter]:
    trained, dtype = (False, weight.dtype) if bias is None else (bias.requires_grad, bias.dtype)
    bias = zeros_like(mean) if bias is None else bias
    scale = ones_like(mean) if scale is None else scale
    shift = zeros_like(mean) if shift is None else shift
    factor = call("mul", scale, call("rsqrt", call("add", var, eps)))
    shape = [1] * weight.ndim
    shape[dim] = -1
    found = call("mul", weight, call("reshape", factor, tuple(shape))).to(weight.dtype)
    moved = call("add", call("mul", call("sub", bias, mean), factor), shift).to(dtype)
    return Parameter(found, weight.requires_grad), Parameter(moved, trained)


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
