"""Losses, with PyTorch's arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol.dtypes import int64
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, ShapeError
from gradwire_protocol.ops.losses import class_dim, is_distribution
from gradwire_protocol.shapes import broadcast

from ..._core.context.modes import is_grad_enabled
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import tensor
from ..._core.tensor.tensor import Tensor
from .layers import pairwise_distance

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "ctc_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def current_spelling(size_average: bool | None, reduce: bool | None, stacklevel: int = 3) -> str:
    """What ``reduction`` says in place of ``size_average`` and ``reduce``, of which one is given. Warns."""
    if reduce is not None and not reduce:
        found = "none"
    else:
        found = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"size_average and reduce were replaced: write reduction={found!r}", UserWarning, stacklevel=stacklevel
    )
    return found


def chosen_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that a loss was called with, in whichever of PyTorch's spellings.

    Raises:
        ArgumentValueError: for a name that is none.
    """
    if size_average is not None or reduce is not None:
        return current_spelling(size_average, reduce, 4)
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is 'mean' now", UserWarning, stacklevel=3)
        return "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentValueError(f"reduction is 'none', 'mean' or 'sum', not {reduction!r}")
    return reduction


def reduced(losses: Any, reduction: str) -> Any:
    """Losses summed, averaged or as they are."""
    return losses if reduction == "none" else call(reduction, losses)


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
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Absolute differences of two tensors of one shape, reduced; with ``weight`` a weighted mean of them."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    a, b = _paired(input, target)
    if weight is None:
        return call("l1_loss", a, b, reduction)
    losses = _weighted(call("l1_loss", a, b, "none"), weight, input)
    return _reduced(losses, reduction, call("sum", weight))


def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Squared differences of two tensors of one shape, reduced; with ``weight`` a weighted mean of them."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    a, b = _paired(input, target)
    if weight is None:
        return call("mse_loss", a, b, reduction)
    losses = _weighted(call("mse_loss", a, b, "none"), weight, input)
    return _reduced(losses, reduction, call("sum", weight))


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """``d**2 / (2 * beta)`` for differences ``d`` below ``beta``, else ``|d| - beta / 2``, reduced."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    a, b = _paired(input, target)
    if beta == 0:
        return call("l1_loss", a, b, reduction)
    return call("smooth_l1_loss", a, b, reduction, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``d**2 / 2`` for differences ``d`` below ``delta``, else ``delta * (|d| - delta / 2)``, reduced."""
    reduction = chosen_reduction(None, None, reduction)
    a, b = _paired(input, target)
    if weight is None:
        return call("huber_loss", a, b, reduction, delta)
    return _reduced(_weighted(call("huber_loss", a, b, "none", delta), weight, input), reduction)


def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
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
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``-(target * log(input) + (1 - target) * log(1 - input))``, reduced; the logarithms are cut at -100."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    _need_one_shape("binary_cross_entropy", input, target)
    return call("binary_cross_entropy", input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """:func:`binary_cross_entropy` of ``sigmoid(input)``, without overflow; ``pos_weight`` weighs its first term."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    _need_one_shape("binary_cross_entropy_with_logits", input, target)
    return call(
        "binary_cross_entropy_with_logits", input, target, weight=weight, pos_weight=pos_weight, reduction=reduction
    )


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative log-probability of the right class: ``(N, C, ...)`` or ``(C,)`` with classes ``(N, ...)`` or ``()``.

    Args:
        weight: ``(C,)``, the weight of each class; a mean is divided by the sum of weights.
        ignore_index: a class that counts nothing.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("nll_loss", input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
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
    if not (is_grad_enabled() and weight.requires_grad):
        return False
    scores, at = input._known_meta(), class_dim(input._known_meta())
    fits = weight.dtype is scores.dtype and tuple(weight.shape) == scores.shape[at : at + 1]
    return fits and is_distribution(scores, target._known_meta())


def _by_class(weight: Tensor, scores: Tensor) -> Any:
    """Weights of classes in a shape that broadcasts with scores."""
    return call("reshape", weight, (-1, *[1] * max(scores.ndim - 2, 0)))


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
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


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-probability of counts ``target`` under Poisson distributions with rates ``exp(input)``.

    Args:
        log_input: ``input`` is the rate's logarithm; otherwise the rate itself, to which ``eps`` is added.
        full: add Stirling's approximation of ``log(target!)``.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("poisson_nll_loss", input, target, log_input, full, eps, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Minus the log-density of ``target`` under normal distributions with means ``input`` and variances ``var``.

    Args:
        var: of the input's shape, or without its last dimension, or with an extent 1 there; or one number.
        full: add the constant ``0.5 * log(2 * pi)``.
        eps: the least variance.

    Raises:
        ArgumentValueError: for a negative variance: of a tensor when a value that depends on it is read.
    """
    reduction = chosen_reduction(None, None, reduction)
    if not isinstance(var, Tensor):
        if not isinstance(var, float):
            raise ArgumentTypeError(f"gaussian_nll_loss: var is a tensor or a float, not {type(var).__name__}")
        if var < 0:
            raise ArgumentValueError(f"gaussian_nll_loss: the variance {var} is negative")
        var = call("full_like", input, var)
    return call("gaussian_nll_loss", input, target, var, full, eps, reduction)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int],
    blank: int = 0, reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log-probability of sequences of labels, summed over all ways to align them with the input.

    Args:
        log_probs: ``(T, N, C)``, or ``(T, C)`` without a batch: as :func:`log_softmax` makes them.
        targets: labels, ``(N, S)`` padded, or those of all sequences one after the other.
        input_lengths: how many of the T times count for each sequence: a tensor or a sequence of ints.
        target_lengths: how many labels each sequence has.
        blank: the label that stands for none.
        zero_infinity: losses of sequences that cannot be aligned, and their gradients, are 0.
    """
    reduction = chosen_reduction(None, None, reduction)
    if not isinstance(input_lengths, Tensor) and not isinstance(target_lengths, Tensor):
        _check_lengths(log_probs, targets, input_lengths, target_lengths)
    lengths = [_lengths("input_lengths", input_lengths), _lengths("target_lengths", target_lengths)]
    return call("ctc_loss", log_probs, targets, *lengths, blank, reduction, zero_infinity)


def _check_lengths(log_probs: Tensor, targets: Tensor, inputs: Any, labels: Any) -> None:
    """Check lengths that are numbers of the program's, as the server checks those in tensors."""
    times = log_probs.shape[0] if log_probs.ndim else 0
    if any(type(n) is not int for n in (*inputs, *labels)):
        return
    if any(not 0 <= n <= times for n in inputs):
        raise ArgumentError(f"ctc_loss: input lengths are from 0 to {times}, not {list(inputs)}")
    if any(n < 0 for n in labels):
        raise ArgumentError(f"ctc_loss: a target length is negative, {min(labels)}")
    if targets.ndim == 2 and any(n > targets.shape[1] for n in labels):
        raise ArgumentError(f"ctc_loss: a target length is {max(labels)}, targets have {targets.shape[1]} columns")


def _lengths(name: str, given: Any) -> Tensor:
    if isinstance(given, Tensor):
        return given
    if not isinstance(given, Sequence) or not all(isinstance(n, int) for n in given):
        raise ArgumentTypeError(f"ctc_loss: {name} is a tensor or a sequence of ints, not {given!r:.60}")
    made: Tensor = tensor(list(given), dtype=int64)
    return made


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """``log(1 + exp(-target * input))`` for targets 1 and -1, reduced."""
    return call("soft_margin_loss", input, target, chosen_reduction(size_average, reduce, reduction))


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1, reduced."""
    return call("hinge_embedding_loss", input, target, margin, chosen_reduction(size_average, reduce, reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``, reduced: a target of 1 says that the first ranks higher."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("margin_ranking_loss", input1, input2, target, margin, reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``1 - cos`` of the angle between vectors where the target is 1, ``max(0, cos - margin)`` where it is -1,
    reduced: ``(N, D)`` twice with a target ``(N,)``, or ``(D,)`` twice with a target ``()``."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("cosine_embedding_loss", input1, input2, target, margin, reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """By how much the other classes' scores come closer to the right one's than ``margin``, to the power of ``p``
    (1 or 2), summed and divided by the number of classes; reduced. ``(N, C)`` with classes ``(N,)``."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("multi_margin_loss", input, target, p, margin, weight, reduction)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """:func:`multi_margin_loss` for several right classes: ``(N, C)`` with labels ``(N, C)``, of which those before
    the first -1 count."""
    return call("multilabel_margin_loss", input, target, chosen_reduction(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The binary cross entropy of scores ``(N, C)`` with targets 0 and 1, averaged over classes, reduced."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("multilabel_soft_margin_loss", input, target, weight, reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with ``d`` of :func:`pairwise_distance`, reduced.

    Args:
        swap: the negative's distance is the smaller of those from the anchor and from the positive.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("triplet_margin_loss", anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """:func:`triplet_margin_loss` with any function of two tensors as the distance."""
    reduction = chosen_reduction(None, None, reduction)
    if margin <= 0:
        raise ArgumentValueError(f"triplet_margin_with_distance_loss: margin must be positive, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        listed = ", ".join(str(list(x.shape)) for x in (anchor, positive, negative))
        raise ShapeError(f"anchor, positive and negative have as many dimensions each, their shapes are {listed}")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = call("minimum", far, distance(positive, negative))
    return reduced(call("clamp_min", call("sub", call("add", near, margin), far), 0), reduction)
