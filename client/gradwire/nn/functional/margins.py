"""Losses of margins, distances, counts and sequences, with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol.dtypes import int64
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, ShapeError

from ...creation import tensor
from ...dispatch import call
from ...tensor import Tensor
from .layers import pairwise_distance
from .reductions import chosen_reduction, reduced

__all__ = [
    "cosine_embedding_loss",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "poisson_nll_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Any = None,
    eps: float = 1e-8, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Minus the log-probability of counts ``target`` under Poisson distributions with rates ``exp(input)``.

    Args:
        log_input: ``input`` is the rate's logarithm; otherwise the rate itself, to which ``eps`` is added.
        full: add Stirling's approximation of ``log(target!)``.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("poisson_nll_loss", input, target, log_input, full, eps, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
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
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
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
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """``log(1 + exp(-target * input))`` for targets 1 and -1, reduced."""
    return call("soft_margin_loss", input, target, chosen_reduction(size_average, reduce, reduction))


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1, reduced."""
    return call("hinge_embedding_loss", input, target, margin, chosen_reduction(size_average, reduce, reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``, reduced: a target of 1 says that the first ranks higher."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("margin_ranking_loss", input1, input2, target, margin, reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """``1 - cos`` of the angle between vectors where the target is 1, ``max(0, cos - margin)`` where it is -1,
    reduced: ``(N, D)`` twice with a target ``(N,)``, or ``(D,)`` twice with a target ``()``."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("cosine_embedding_loss", input1, input2, target, margin, reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """By how much the other classes' scores come closer to the right one's than ``margin``, to the power of ``p``
    (1 or 2), summed and divided by the number of classes; reduced. ``(N, C)`` with classes ``(N,)``."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("multi_margin_loss", input, target, p, margin, weight, reduction)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """:func:`multi_margin_loss` for several right classes: ``(N, C)`` with labels ``(N, C)``, of which those before
    the first -1 count."""
    return call("multilabel_margin_loss", input, target, chosen_reduction(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """The binary cross entropy of scores ``(N, C)`` with targets 0 and 1, averaged over classes, reduced."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("multilabel_soft_margin_loss", input, target, weight, reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with ``d`` of :func:`pairwise_distance`, reduced.

    Args:
        swap: the negative's distance is the smaller of those from the anchor and from the positive.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return call("triplet_margin_loss", anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Any] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Any:  # fmt: skip
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
