"""Losses that ask for a margin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradwire_protocol.errors import KernelError

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import composite, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import waits
from ..numerics.scatter import add_at
from ..runtime.arrays import Array, Namespace
from .likelihoods import reduced

BLOCK = 1 << 18
"""Pairs of classes that are compared at a time."""

LEAST_SQUARE = 1e-12
"""Added to squared lengths, so that a vector of zeros has a direction."""


def _reduced(losses: Array, reduction: str) -> Array:
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.dtype.type(losses.size)


@kernel("soft_margin_loss")
def soft_margin_loss(xp: Namespace, x: Array, target: Array, reduction: str) -> Array:
    return _reduced(xp.logaddexp(xp.zeros((), x.dtype), -target * x), reduction)


@joint_derivative("soft_margin_loss", saves="self target")
def soft_margin_loss_gradient(s: Saved, g: Tensor) -> Tensor:
    if s.reduction == "mean":
        g = g / s.self.numel
    slope: Tensor = -(s.target * F.sigmoid(-(s.target * s.self)))
    return slope * g


@composite("hinge_embedding_loss")
def hinge_embedding_loss(engine: EngineContext, x: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    far = F.where(target != 1, F.clamp_min(margin - x, 0), 0)
    return reduced(far + F.where(target != -1, x, 0), reduction)


@composite("margin_ranking_loss")
def margin_ranking_loss(
    engine: EngineContext, x: Tensor, y: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    return reduced(F.clamp_min(-target * (x - y) + float(margin), 0), reduction)


@composite("cosine_embedding_loss")
def cosine_embedding_loss(
    engine: EngineContext, x: Tensor, y: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    squares = (F.sum(x * x, (-1,)) + LEAST_SQUARE) * (F.sum(y * y, (-1,)) + LEAST_SQUARE)
    cosine = F.sum(x * y, (-1,)) / F.sqrt(squares)
    alike = F.where(target == 1, 1 - cosine, 0)
    return reduced(alike + F.where(target == -1, F.clamp_min(cosine - margin, 0), 0), reduction)


@composite("triplet_margin_loss")
def triplet_margin_loss(
    engine: EngineContext, anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float,
    swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    def distance(x: Tensor, y: Tensor) -> Tensor:
        found: Tensor = F.norm(x - y + float(eps), p, (-1,))
        return found

    far = distance(anchor, negative)
    if swap:
        far = F.minimum(far, distance(positive, negative))
    return reduced(F.clamp_min(distance(anchor, positive) + margin - far, 0), reduction)


@composite("multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    engine: EngineContext, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    losses = -(target * F.logsigmoid(x) + (1 - target) * F.logsigmoid(-x))
    if weight is not None:
        losses = losses * weight
    return reduced(F.sum(losses, (-1,)) / x.shape[-1], reduction)


# Several classes


def _own(xp: Namespace, x: Array, classes: Array) -> Array:
    """Which score is that of the sample's class: a mask like ``(N, C)``."""
    if not waits(xp) and classes.size and not (classes.min() >= 0 and classes.max() < x.shape[1]):
        raise KernelError(f"multi_margin_loss: a target is outside of the {x.shape[1]} classes")
    return classes.reshape(-1, 1) == xp.arange(x.shape[1])


@kernel("multi_margin_loss")
def multi_margin_loss(
    xp: Namespace, x: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: str
) -> Array:
    rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    own = _own(xp, rows, target)
    scores = xp.where(own, rows, 0).sum(axis=1, keepdims=True)
    excess = xp.maximum(margin - scores + rows, 0)
    if p == 2:
        excess *= excess
    if weight is not None:
        excess *= xp.take(weight, target.reshape(-1))[:, None]
    losses = xp.where(own, 0, excess).sum(axis=1) / rows.dtype.type(rows.shape[1])
    found = _reduced(losses, reduction)
    return found.reshape(target.shape) if reduction == "none" and x.ndim < 2 else found


@joint_derivative("multi_margin_loss", saves="self target weight")
def multi_margin_loss_gradient(s: Saved, g: Tensor) -> Tensor:
    shape = s.self.shape
    classes = shape[-1] if shape else 1
    rows = F.reshape(s.self, (-1, classes))
    target = F.reshape(s.target, (-1,))
    own = F.to(F.one_hot(target, classes), dtype=rows.dtype)
    # The class's own score does not compete with itself.
    excess = s.margin - F.sum(rows * own, (1,), True) + rows
    slopes = F.where((excess > 0) & (own == 0), excess * 2 if s.p == 2 else 1, 0)
    scale = 1 / classes / (max(rows.shape[0], 1) if s.reduction == "mean" else 1)
    g = F.reshape(g, (-1, 1)) * scale
    if s.weight is not None:
        g = g * F.unsqueeze(F.index_select(s.weight, 0, target), 1)
    slopes = slopes * g
    found: Tensor = F.reshape(slopes - own * F.sum(slopes, (1,), True), shape)
    return found


def _labels(xp: Namespace, rows: Array, target: Array) -> tuple[Array, Array, Array]:
    """Labels as indices, which of them count (those before the first -1), and which classes they name."""
    target = target.reshape(rows.shape)
    counts = xp.cumsum(target < 0, axis=1) == 0
    if not waits(xp):
        wrong = target[(target < -1) | (target >= rows.shape[1])]
        if wrong.size:
            raise KernelError(
                f"multilabel_margin_loss: label {int(wrong[0])} is outside of the {rows.shape[1]} classes"
            )
    labels = xp.where(counts, target, 0)
    named = xp.zeros(rows.shape, np.int64)
    add_at(xp, named.reshape(-1), _places(xp, labels, rows.shape[1]), counts.astype(np.int64).reshape(-1))
    return labels, counts, named > 0


def _places(xp: Namespace, labels: Array, classes: int) -> Array:
    """Where in the flat memory of ``(N, C)`` each sample's labels are."""
    return (labels + xp.arange(labels.shape[0])[:, None] * classes).reshape(-1)


def _excesses(xp: Namespace, x: Array, target: Array) -> Iterator[tuple[slice, Array, Array]]:
    """Portions of samples: their slice, labels, and ``(n, labels, classes)`` by which others come too close."""
    rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    labels, counts, named = _labels(xp, rows, target)
    step = max(1, BLOCK // max(rows.shape[1] ** 2, 1))
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        own = xp.take_along_axis(rows[part], labels[part], axis=1)
        excess = xp.maximum(1 - own[:, :, None] + rows[part][:, None, :], 0)
        yield part, labels[part], xp.where(counts[part][:, :, None] & ~named[part][:, None, :], excess, 0)


@kernel("multilabel_margin_loss")
def multilabel_margin_loss(xp: Namespace, x: Array, target: Array, reduction: str) -> Array:
    classes = x.shape[-1] if x.ndim else 1
    losses = xp.zeros(x.size // classes, x.dtype)
    for part, _, excess in _excesses(xp, x, target):
        losses[part] = excess.sum(axis=(1, 2)) / x.dtype.type(classes)
    found = _reduced(losses, reduction)
    return found.reshape(()) if reduction == "none" and x.ndim < 2 else found


@kernel("multilabel_margin_slopes")
def multilabel_margin_slopes(xp: Namespace, x: Array, target: Array) -> Array:
    classes = x.shape[-1] if x.ndim else 1
    slopes = xp.zeros((x.size // classes, classes), x.dtype)
    for part, labels, excess in _excesses(xp, x, target):
        close = (excess > 0).astype(x.dtype) / x.dtype.type(classes)
        slopes[part] = close.sum(axis=1)
        add_at(xp, slopes[part].reshape(-1), _places(xp, labels, classes), -close.sum(axis=2).reshape(-1))
    return slopes.reshape(x.shape)


@joint_derivative("multilabel_margin_loss", saves="self target")
def multilabel_margin_loss_gradient(s: Saved, g: Tensor) -> Tensor:
    x = s.self
    if s.reduction == "mean" and x.ndim == 2:
        g = g / x.shape[0]
    found: Tensor = F.multilabel_margin_slopes(x, s.target) * (F.unsqueeze(g, -1) if g.ndim else g)
    return found
