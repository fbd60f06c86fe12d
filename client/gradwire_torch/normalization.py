"""Normalizations by layers, groups and batches."""

from __future__ import annotations

from typing import Any

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes, given, gradients_by, kernel, returned, write


@computes("native_layer_norm")
def layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The result, mean and reciprocal deviation; these are wide, as PyTorch's are on every device but the CPU."""
    return call("layer_norm_training", input, normalized_shape, weight, bias, eps)


@computes("native_layer_norm_backward")
def layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any
) -> Any:
    wide = _wide(input)
    made = call("layer_norm_backward", grad_out, input, mean.to(wide), rstd.to(wide), weight, bias is not None)
    found = iter((made,) if isinstance(made, gw.Tensor) else made)
    by_input = next(found)
    by_weight = next(found) if weight is not None else None
    by_bias = next(found, None) if bias is not None else None
    if bias is not None and by_bias is None:
        lead = tuple(range(grad_out.ndim - len(normalized_shape)))
        by_bias = grad_out.sum(lead) if lead else grad_out.clone()
    return _masked((by_input, by_weight, by_bias), output_mask)


@computes("native_group_norm")
def group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    found, mean, rstd = call("group_norm_training", input, group, weight, bias, eps)
    kept = mean.dtype if weight is not None and weight.dtype is mean.dtype else input.dtype
    return found, mean.to(kept), rstd.to(kept)


@computes("native_group_norm_backward")
def group_norm_backward(
    grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int, group: int,
    output_mask: Any,
) -> Any:  # fmt: skip
    wide = _wide(input)
    found = call("group_norm_backward", grad_out, input, mean.to(wide), rstd.to(wide), group, weight)
    return _masked(found, output_mask)


@computes("_fused_rms_norm")
def rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    return call("rms_norm_training", input, normalized_shape, weight, eps)


@computes("_fused_rms_norm_backward")
def rms_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Any, rstd: Any, weight: Any, output_mask: Any
) -> Any:
    found = call("rms_norm_backward", grad_out, input, rstd, weight)
    return _masked((found, None) if isinstance(found, gw.Tensor) else found, output_mask)


@computes("native_batch_norm_backward")
def batch_norm_backward(
    grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_invstd: Any,
    train: bool, eps: float, output_mask: Any,
) -> Any:  # fmt: skip
    wide = _wide(input)
    if train:  # the saved value is that of 1 / sqrt(var + eps)
        mean, var, eps = save_mean.to(wide), save_invstd.to(wide).pow(-2), 0.0
    else:
        mean, var = running_mean.to(wide), running_var.to(wide)
    return _masked(call("batch_norm_backward", grad_out, input, mean, var, weight, train, eps), output_mask)


@computes("_weight_norm_interface_backward")
def weight_norm_backward(grad_w: Any, saved_v: Any, saved_g: Any, saved_norms: Any, dim: int) -> Any:
    """By a direction and its length."""
    others = tuple(i for i in range(saved_v.ndim) if i != dim % max(saved_v.ndim, 1))

    def weight(v: Any, g: Any) -> Any:
        return v * (g / (v * v).sum(others, keepdim=True).sqrt() if others else g / v.abs())

    return tuple(gradients_by(weight, [saved_v, saved_g], [0, 1], grad_w))


def _wide(input: Any) -> Any:
    return gw.float32 if input.dtype.is_low_precision else input.dtype


def _masked(found: Any, mask: Any) -> Any:
    return tuple(one if asked else None for one, asked in zip(found, mask, strict=True))


def _of_batch(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> Any:
    """The result, mean and reciprocal deviation; running statistics, where there are any, move towards the batch's."""
    if not training or input.ndim < 2:
        return gw.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    found, mean, var = call("batch_norm_training", input, weight, bias, eps)
    if running_mean is not None and input.numel():
        count = input.numel() // input.shape[1]
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        running_var.lerp_((var * (count / max(count - 1, 1))).to(running_var.dtype), momentum)
    return found, mean.to(input.dtype), (var + eps).rsqrt().to(input.dtype)


@kernel("_native_batch_norm_legit.default")
def batch_norm_with_running(*args: Any, **kwargs: Any) -> Any:
    """Running statistics, where there are any, are written to."""
    return returned(_of_batch(*[given(a) for a in args], **{k: given(v) for k, v in kwargs.items()}))


@kernel("_native_batch_norm_legit.out")
def batch_norm_with_running_into(*args: Any, out: Any, save_mean: Any, save_invstd: Any) -> Any:
    """The same, written to tensors that exist."""
    outs = out, save_mean, save_invstd
    for target, result in zip(outs, batch_norm_with_running(*args), strict=True):
        write(target, result)
    return outs


@computes("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(input: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    return _of_batch(input, weight, bias, None, None, training, momentum, eps)


@kernel("_batch_norm_with_update.default")
def batch_norm_with_update(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> Any:
    """In training; the last result is what a kernel would reserve, and is empty."""
    args = [given(a) for a in (input, weight, bias, running_mean, running_var, True, momentum, eps)]
    return returned((*_of_batch(*args), args[0].new_empty(0, dtype=gw.uint8)))


@kernel("_batch_norm_with_update.out")
def batch_norm_with_update_into(
    *args: Any, out: Any, save_mean: Any, save_invstd: Any, reserve: Any, **kwargs: Any
) -> Any:
    """The same, written to tensors that exist."""
    outs = out, save_mean, save_invstd, reserve
    for target, result in zip(outs, batch_norm_with_update(*args, **kwargs), strict=True):
        write(target, result)
    return outs
