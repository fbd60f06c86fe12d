"""Losses, with PyTorch's arguments."""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError
from gradwire_protocol.shapes import broadcast

from ...dispatch import call
from ...modes import is_grad_enabled
from ...tensor import Tensor
from .reductions import chosen_reduction

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]


def _paired(input: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Input and target of one shape. Where they are not, they are broadcast, with a warning."""
    a, b = tuple(input.shape), tuple(target.shape)
    if a != b:
        warnings.warn(
            f"the input has shape {list(a)}, the target {list(b)}: broadcasting them is probably a mistake",
            UserWarning,
            stacklevel=3,
        )
        common = broadcast(a, b)
        return call("expand", input, common), call("expand", target, common)
    return input, target


def _reduced(losses: Any, reduction: str, total: Any = None) -> Any:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return call("sum", losses)
    return call("mean", losses) if total is None else call("div", call("sum", losses), total)


def _weighted(losses: Any, weight: Tensor, input: Tensor) -> Any:
    if tuple(weight.shape) != tuple(input.shape):
        raise ArgumentValueError(
            f"the weight must have the input's shape {list(input.shape)}, it has {list(weight.shape)}"
        )
    return call("mul", losses, weight)


def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Any:  # fmt: skip
    """Absolute differences of two tensors of one shape, reduced; with ``weight`` a weighted mean of them."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    a, b = _paired(input, target)
    if weight is None:
        return call("l1_loss", a, b, reduction)
    losses = _weighted(call("l1_loss", a, b, "none"), weight, input)
    return _reduced(losses, reduction, call("sum", weight))


def mse_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Any:  # fmt: skip
    """Squared differences of two tensors of one shape, reduced; with ``weight`` a weighted mean of them."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    a, b = _paired(input, target)
    if weight is None:
        return call("mse_loss", a, b, reduction)
    losses = _weighted(call("mse_loss", a, b, "none"), weight, input)
    return _reduced(losses, reduction, call("sum", weight))


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Any:  # fmt: skip
    """``d**2 / (2 * beta)`` for differences ``d`` below ``beta``, else ``|d| - beta / 2``, reduced."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    a, b = _paired(input, target)
    if beta == 0:
        return call("l1_loss", a, b, reduction)
    return call("smooth_l1_loss", a, b, reduction, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Any:
    """``d**2 / 2`` for differences ``d`` below ``delta``, else ``delta * (|d| - delta / 2)``, reduced."""
    reduction = chosen_reduction(None, None, reduction)
    a, b = _paired(input, target)
    if weight is None:
        return call("huber_loss", a, b, reduction, delta)
    return _reduced(_weighted(call("huber_loss", a, b, "none", delta), weight, input), reduction)


def kl_div(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    log_target: bool = False,
) -> Any:  # fmt: skip
    """``target * (log(target) - input)``, reduced: how far log-probabilities are from probabilities.

    Args:
        reduction: ``"batchmean"`` divides the sum by the first extent, which is the mathematical definition.
        log_target: the target holds logarithms, too.
    """
    if reduction != "batchmean" or size_average is not None or reduce is not None:
        reduction = chosen_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn(
            "kl_div with reduction='mean' divides by the number of elements: 'batchmean' is the definition",
            UserWarning,
            stacklevel=2,
        )
    if reduction != "batchmean":
        return call("kl_div", input, target, reduction, log_target)
    total = call("kl_div", input, target, "sum", log_target)
    return call("div", total, input.shape[0]) if input.ndim else total


def _need_one_shape(name: str, input: Tensor, target: Tensor) -> None:
    if tuple(input.shape) != tuple(target.shape):
        raise ArgumentValueError(f"{name}: the input has shape {list(input.shape)}, the target {list(target.shape)}")


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """``-(target * log(input) + (1 - target) * log(1 - input))``, reduced; the logarithms are cut at -100."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    _need_one_shape("binary_cross_entropy", input, target)
    return call("binary_cross_entropy", input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Any:  # fmt: skip
    """:func:`binary_cross_entropy` of ``sigmoid(input)``, without overflow; ``pos_weight`` weighs its first term."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    _need_one_shape("binary_cross_entropy_with_logits", input, target)
    return call(
        "binary_cross_entropy_with_logits", input, target, weight=weight, pos_weight=pos_weight, reduction=reduction
    )


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative log-probability of the right class: ``(N, C, ...)`` or ``(C,)`` with classes ``(N, ...)`` or ``()``.

    Args:
        weight: ``(C,)``, the weight of each class; a mean is divided by the sum of weights.
        ignore_index: a class that counts nothing.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("nll_loss", input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """:func:`nll_loss` of ``log_softmax(input)``. The target may also hold a probability for each class.

    Args:
        weight: ``(C,)``, the weight of each class; gradients flow to it where the target holds probabilities.
        label_smoothing: the share of the target that is spread evenly over all classes.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is not None and _learns(weight, input, target) and ignore_index < 0 <= label_smoothing <= 1:
        if label_smoothing:
            target = call("add", call("mul", target, 1 - label_smoothing), label_smoothing / weight.numel())
        return call("cross_entropy", input, call("mul", target, _by_class(weight, input)), reduction=reduction)
    return call(
        "cross_entropy", input, target, weight=weight, ignore_index=ignore_index, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip


def _learns(weight: Tensor, input: Tensor, target: Tensor) -> bool:
    """Whether a gradient flows to the weights of classes. They are factors of the target then, if that holds
    probabilities, and the op has no derivative by them."""
    return (
        is_grad_enabled()
        and weight.requires_grad
        and target.is_floating_point()
        and tuple(target.shape) == tuple(input.shape)
        and tuple(weight.shape) == tuple(input.shape[min(1, input.ndim - 1) :][:1])
        and weight.dtype is input.dtype
    )


def _by_class(weight: Tensor, scores: Tensor) -> Any:
    """Weights of classes in a shape that broadcasts with scores."""
    return call("reshape", weight, (-1, *[1] * max(scores.ndim - 2, 0)))


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Any:  # fmt: skip
    """:func:`cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    Args:
        input: ``(N, in_features)`` or ``(in_features,)``.
        linear_weight: ``(C, in_features)``, or ``(C, d1, ..., in_features)`` for scores ``(N, C, d1, ...)``.
        linear_bias: ``(C,)`` or ``(C, d1, ...)``.
        target: classes or class probabilities.
        ignore_index: a class that counts nothing.
        options: a :class:`gradwire.nn.LinearCrossEntropyOptions`; how PyTorch saves memory, without effect here.

    Raises:
        ArgumentError: for shapes that do not go together, or ``ignore_index`` with class probabilities.
    """
    name = "linear_cross_entropy"
    if input.ndim not in (1, 2) or linear_weight.ndim < 2:
        raise ArgumentError(
            f"{name}: the input has 1 or 2 dimensions and the weight at least 2, their shapes are {list(input.shape)} "
            f"and {list(linear_weight.shape)}"
        )
    *out_shape, features = linear_weight.shape
    if input.shape[-1] != features:
        raise ArgumentError(f"{name}: an input of {input.shape[-1]} features meets a weight for {features}")
    if len(out_shape) > 1 and input.ndim != 2:
        raise ArgumentError(f"{name}: a weight of shape {list(linear_weight.shape)} takes a batch, (N, {features})")
    if linear_bias is not None and list(linear_bias.shape) != out_shape:
        raise ArgumentError(f"{name}: the bias has the shape {out_shape}, not {list(linear_bias.shape)}")
    shape = (*input.shape[:-1], *out_shape)
    if target.is_floating_point() and tuple(target.shape) == shape and ignore_index is not None:
        raise ArgumentError(f"{name}: ignore_index={ignore_index} has no meaning for a target of probabilities")
    if len(out_shape) > 1:
        linear_weight = call("reshape", linear_weight, (-1, features))
        linear_bias = None if linear_bias is None else call("reshape", linear_bias, (-1,))
    scores = call("view", call("linear", input, linear_weight, linear_bias), shape)
    return cross_entropy(
        scores, target, weight, ignore_index=-100 if ignore_index is None else ignore_index, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip
