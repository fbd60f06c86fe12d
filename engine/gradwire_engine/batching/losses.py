"""Losses of mapped tensors: one per element for all samples, reduced sample by sample."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.ops.losses import class_dim, is_distribution

from ..functional import F
from ..tensor import Tensor
from .level import Level, rule, sample_by_sample
from .pointwise import elementwise


@rule(
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "kl_div",
)  # fmt: skip
def by_element(x: Level, *values: Any) -> Any:
    at = x.entry.op.positions["reduction"]
    reduction = values[at]
    if reduction == "none":
        same = values[0].shape == values[1].shape  # some losses do not broadcast these two
        lifted = [x.wrap(x.front(v), v.meta) for v in values[:2]] if same else values[:2]
        return elementwise(x, *lifted, *values[2:])
    losses = x.call(*values[:at], "none", *values[at + 1 :])
    if reduction == "mean":
        return F.mean(losses)
    total = F.sum(losses)
    if reduction == "batchmean":
        first: Tensor = values[0]
        return total / (first.shape[0] if first.ndim else 1)
    return total


def _fold(x: Level, tensor: Tensor, alone: bool) -> Any:
    """Samples as part of the batch; ``alone`` where one sample has none."""
    inner = x.front(tensor)
    return inner if alone else F.reshape(inner, (x.size * tensor.shape[0], *tensor.shape[1:]))


def _sequential(x: Level, values: tuple[Any, ...]) -> Any:
    return sample_by_sample(x, list(values))


@rule("nll_loss", "cross_entropy")
def by_class(x: Level, *values: Any) -> Any:
    scores, target, weight, ignored, reduction, *smoothing = values
    if x.has(weight):
        return _sequential(x, values)
    alone = scores.ndim == 1
    folded = [_fold(x, t, alone) for t in (scores, target)]
    logs: tuple[Any, ...] = ()
    losses = x.call(*folded, weight, ignored, "none", *smoothing)
    if type(losses) is tuple:
        losses, logs = losses[0], losses[1:]
    shape = tuple(n for i, n in enumerate(scores.shape) if i != class_dim(scores.meta))
    losses = x.wrap(F.reshape(losses, (x.size, *shape)))
    if reduction == "none":
        return (losses, *logs) if logs else losses
    reduced = F.sum(losses)
    if reduction == "mean":
        reduced = _mean(reduced, _counted(losses, scores, target, weight, ignored))
    return (reduced, *logs) if logs else reduced


def _mean(total: Any, count: Any) -> Any:
    """NaN where nothing counts, with a gradient of 0."""
    if not isinstance(count, Tensor):
        return total / count
    nothing = F.eq(count, 0)
    return F.where(nothing, float("nan"), total / F.where(nothing, 1.0, count))


def _counted(losses: Tensor, scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> Any:
    """What a mean divides by: the weights of the classes that count."""
    if is_distribution(scores.meta, target.meta):
        return losses.numel
    counts = F.ne(target, ignored)
    if weight is None:
        return F.to(F.sum(counts), dtype=losses.dtype)
    classes = F.where(counts, target, 0)
    return F.sum(F.index(weight, [classes]) * counts)


@rule("cross_entropy_backward")
def cross_entropy_backward(x: Level, gradient: Tensor, *rest: Any) -> Any:
    if any(x.has(v) for v in rest):
        return _sequential(x, (gradient, *rest))
    logs: Tensor = rest[0]
    # It is linear in the gradient, which is all that is mapped.
    one = x.engine.call("ones", gradient.shape, dtype=gradient.dtype, device=gradient.device)
    factor = x.call(one, *rest)
    return factor * (gradient if gradient.ndim == 0 else F.unsqueeze(gradient, class_dim(logs.meta)))
