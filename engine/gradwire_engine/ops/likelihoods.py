"""Losses that are minus the logarithm of a distribution's density."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from gradwire_protocol.errors import ArgumentValueError, KernelError, Unsupported
from gradwire_protocol.ops.likelihoods import LABELS_AT_ONCE, alignment_states, variance_shape

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import composite, derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import waits
from ..runtime import deadline
from ..runtime.arrays import Array, Namespace


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """Losses summed, averaged or as they are."""
    if reduction == "none":
        return losses
    found: Tensor = F.sum(losses) if reduction == "sum" else F.mean(losses)
    return found


@composite("poisson_nll_loss")
def poisson_nll_loss(
    engine: EngineContext, x: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: str
) -> Tensor:
    losses = F.exp(x) - target * x if log_input else x - target * F.log(x + float(eps))
    if full:
        stirling = target * F.log(target) - target + F.log(target * (2 * pi)) * 0.5
        losses = losses + F.masked_fill(stirling, target <= 1, 0)
    return reduced(losses, reduction)


@composite("gaussian_nll_loss")
def gaussian_nll_loss(
    engine: EngineContext, x: Tensor, target: Tensor, var: Tensor, full: bool, eps: float, reduction: str
) -> Tensor:
    shape = variance_shape(x.shape, var.shape)
    var = F.bounded_variance(var if shape == var.shape else F.unsqueeze(var, -1), eps)
    losses = (F.log(var) + (x - target) ** 2 / var) * 0.5
    return reduced(losses + 0.5 * log(2 * pi) if full else losses, reduction)


@kernel("bounded_variance")
def bounded_variance(xp: Namespace, var: Array, eps: float) -> Array:
    if not waits(xp) and (var < 0).any():
        raise ArgumentValueError("gaussian_nll_loss: a variance is negative")
    return xp.maximum(var, eps)


derivative("bounded_variance", self=lambda s, g: g)


# Connectionist temporal classification: alignments are paths through the labels with a blank before, between and after
# them. All sequences of a batch, and all states, move from one time to the next at once.


@kernel("ctc_loss", across=True)
def ctc_loss(
    xp: Namespace, logs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int, reduction: str,
    zero_infinity: bool,
) -> tuple[Array, Array]:  # fmt: skip
    shape = logs.shape
    logs = logs.reshape(shape[0], -1, shape[-1]).astype(np.float64)
    times, batch, count = logs.shape
    ends, sizes = (x.reshape(batch).astype(np.int64) for x in (input_lengths, target_lengths))
    if not waits(xp):
        _check_lengths(times, targets, ends, sizes)
    labels = _padded_labels(xp, targets, sizes, times)
    states = xp.full((batch, 2 * labels.shape[1] + 1), blank, np.int64)
    states[:, 1::2] = labels
    if not waits(xp) and states.size and not (states.min() >= 0 and states.max() < count):
        raise KernelError(f"ctc_loss: a target has a label outside of the {count} labels")
    scores = xp.take_along_axis(logs.transpose(1, 0, 2), states[:, None, :], axis=2)
    # A label may follow the one before it directly, unless they are equal.
    direct = xp.zeros(states.shape, bool)
    direct[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    last = 2 * sizes[:, None]
    place = xp.arange(states.shape[1])
    final = (place == last) | ((place == last - 1) & (last > 0))
    before = _paths_to(xp, scores, direct, last)
    arrived = before[xp.maximum(ends - 1, 0), xp.arange(batch)]
    losses = -_log_sum(xp, xp.where(final, arrived, -np.inf))
    losses = xp.where(ends == 0, xp.where(sizes == 0, 0.0, np.inf), losses)
    # More labels than times have no states here, nor any alignment.
    losses = xp.where(sizes > labels.shape[1], np.inf, losses)
    gradient = _gradient(xp, logs, states, before, _paths_from(xp, scores, direct, final, ends), losses, ends)
    if zero_infinity:
        gradient = xp.where((losses == np.inf)[:, None], 0.0, gradient)
        losses = xp.where(losses == np.inf, 0.0, losses)
    if reduction == "mean":
        weights = 1 / (xp.maximum(sizes, 1) * batch).astype(np.float64)
        losses, gradient = (losses * weights).sum(), gradient * weights[:, None]
    elif reduction == "sum":
        losses = losses.sum()
    return (losses.reshape(()) if len(shape) == 2 else losses), gradient.reshape(shape)


def _check_lengths(times: int, targets: Array, ends: Array, sizes: Array) -> None:
    if ends.size and (ends.min() < 0 or ends.max() > times):
        raise KernelError(f"ctc_loss: input lengths are from 0 to {times}, not from {ends.min()} to {ends.max()}")
    if sizes.min() < 0:
        raise KernelError(f"ctc_loss: a target length is negative, {sizes.min()}")
    if targets.ndim == 2 and sizes.max() > targets.shape[1]:
        raise KernelError(f"ctc_loss: a target length is {sizes.max()}, targets have {targets.shape[1]} columns")
    if targets.ndim == 1 and sizes.sum() != targets.size:
        raise KernelError(f"ctc_loss: target lengths add up to {sizes.sum()}, but there are {targets.size} labels")


def _padded_labels(xp: Namespace, targets: Array, sizes: Array, times: int) -> Array:
    """The labels as ``(N, S)``: beyond a sequence's length the first label, which no path reaches."""
    longest = alignment_states(times, targets.shape[-1]) // 2
    if not waits(xp):
        longest = min(longest, int(sizes.max()))
    if not longest:
        return xp.zeros((sizes.size, 0), np.int64)
    place = xp.arange(longest)
    if targets.ndim == 2:
        labels = targets[:, :longest]
    else:
        starts = xp.cumsum(sizes) - sizes
        labels = targets[xp.minimum(starts[:, None] + place, targets.size - 1)]
    return xp.where(place < sizes[:, None], labels, 0).astype(np.int64)


def _log_sum(xp: Namespace, *terms: Array) -> Array:
    """The logarithm of a sum of exponentials: of several arrays, or of one along its last axis."""
    stacked = xp.stack(terms) if len(terms) > 1 else terms[0].T
    top = stacked.max(axis=0)
    top = xp.where(top == -np.inf, 0.0, top)
    return xp.log(xp.exp(stacked - top).sum(axis=0)) + top


def _paths_to(xp: Namespace, scores: Array, direct: Array, last: Array) -> Array:
    """The log-probability of all paths up to each state at each time: ``(T, N, states)``."""
    batch, times, width = scores.shape
    found = xp.full((times, batch, width), -np.inf)
    place = xp.arange(width)
    found[0] = xp.where((place < 2) & (place <= last), scores[:, 0], -np.inf)
    stay = xp.full((batch, width + 2), -np.inf)
    for t in range(1, times):
        deadline.check("ctc_loss")
        stay[:, 2:] = found[t - 1]
        skip = xp.where(direct, stay[:, :-2], -np.inf)
        found[t] = _log_sum(xp, stay[:, 2:], stay[:, 1:-1], skip) + scores[:, t]
    return found


def _paths_from(xp: Namespace, scores: Array, direct: Array, final: Array, ends: Array) -> Array:
    """The log-probability of all paths from each state on, without the state itself: ``(T, N, states)``."""
    batch, times, width = scores.shape
    found = xp.full((times, batch, width), -np.inf)
    stop = xp.where(final, 0.0, -np.inf)
    ahead = xp.full((batch, width + 2), -np.inf)
    onward = xp.zeros((batch, width + 2), bool)
    onward[:, :width] = direct
    for t in range(times - 1, -1, -1):
        deadline.check("ctc_loss")
        if t + 1 < times:
            ahead[:, :width] = found[t + 1] + scores[:, t + 1]
            skip = xp.where(onward[:, 2:], ahead[:, 2:], -np.inf)
            found[t] = _log_sum(xp, ahead[:, :-2], ahead[:, 1:-1], skip)
        found[t] = xp.where((ends == t + 1)[:, None], stop, found[t])
    return found


def _gradient(
    xp: Namespace, logs: Array, states: Array, before: Array, after: Array, losses: Array, ends: Array
) -> Array:
    """As PyTorch, the gradient of log-probabilities that a log-softmax made: its own gradient leaves this unchanged."""
    times, batch, count = logs.shape
    # Log-probabilities of passing each state, summed for each label.
    passing = xp.exp(before + after + losses[:, None])
    passing = passing.transpose(1, 0, 2)
    shares = xp.empty((times, batch, count), logs.dtype)
    step = max(1, LABELS_AT_ONCE // max(states.shape[1] * count, 1))
    for i in range(0, batch, step):
        some = slice(i, i + step)
        label = (states[some, :, None] == xp.arange(count)).astype(logs.dtype)
        shares[:, some] = xp.matmul(passing[some], label).transpose(1, 0, 2)
    counts = (xp.arange(times)[:, None] < ends)[:, :, None]
    return xp.where(counts, xp.exp(logs) - shares, 0.0)


derivative("ctc_loss", self=("result1", lambda s, g, _: F.ctc_loss_gradient(g, s.result1)))


@kernel("ctc_loss_gradient")
def times_each(xp: Namespace, g: Array, each: Array) -> Array:
    return each * (g if g.ndim == 0 else g[..., None])


def _once(s: Saved, g: Tensor) -> Any:
    raise Unsupported("ctc_loss has no second derivative")


derivative("ctc_loss_gradient", g=_once, each=_once)
