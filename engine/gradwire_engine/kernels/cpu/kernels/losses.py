"""Cross entropy of class indices: log-softmax, the choice of the class and the gradient in one pass each.

Class weights, smoothed labels, targets that are shares, and classes that do not lie last are left to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from gradwire_protocol.errors import IndexOutOfRange

from ....autograd.registry import bind_layout, compiled
from ....runtime.arrays import Array, Namespace
from .. import threads
from ..elementary import exp
from ..native import Count, Flag, In1, In2, Int1, IntOut1, Out1, Out2, dense, native
from ..rows import row_sum, row_top

F = np.float32

MOST_CLASSES: Final = 1 << 16


@native()
def likelihoods(x: In2, target: Int1, ignored: Count, logs: Out2, losses: Out1, start: Count, stop: Count) -> None:
    for i in range(start, stop):
        row, done = x[i], logs[i]
        top = row_top(row)
        for j in range(row.size):
            done[j] = exp(row[j] - top)
        mass = F(math.log(row_sum(done)))
        for j in range(row.size):
            done[j] = (row[j] - top) - mass
        losses[i] = F(0) if target[i] == ignored else -done[target[i]]


@native()
def likelihood_slopes(
    logs: In2, target: Int1, ignored: Count, factors: In1, out: Out2, start: Count, stop: Count
) -> None:
    last = factors.size - 1
    for i in range(start, stop):
        row, done = logs[i], out[i]
        factor = F(0) if target[i] == ignored else factors[min(i, last)]
        for j in range(row.size):
            done[j] = exp(row[j]) * factor
        if target[i] != ignored:
            done[target[i]] -= factor


@native("float32")
def survey(target: Int1, classes: Count, ignored: Count, found: IntOut1) -> None:
    """How many samples count, and the first of those whose class is none."""
    counted, wrong = 0, -1
    for i in range(target.size):
        if target[i] != ignored:
            counted += 1
            if wrong < 0 and (target[i] < 0 or target[i] >= classes):
                wrong = i
    found[0], found[1] = counted, wrong


def _counted(target: Array, classes: int, ignored: int) -> int:
    """How many samples count.

    Raises:
        IndexOutOfRange: naming a class that there is not.
    """
    found = np.empty(2, np.int64)
    survey(target, classes, ignored, found)
    if found[1] >= 0:
        raise _no_class(target, found[1], classes)
    return int(found[0])


def _no_class(target: Array, at: int, classes: int) -> IndexOutOfRange:
    return IndexOutOfRange(f"a target of class {int(target[at])} is outside the {classes} classes")


def _applies(x: Array, target: Array, weight: Array | None, smoothing: float) -> bool:
    return (
        x.dtype.char == "f" and x.ndim in (1, 2) and weight is None and not smoothing and target.dtype == np.int64
        and target.ndim == x.ndim - 1 and 0 < x.shape[-1] <= MOST_CLASSES and x.size > 0
    )  # fmt: skip


@native()
def entropy(
    x: In2, target: Int1, ignored: Count, mean: Flag, logs: Out2, losses: Out1, made: Out1, found: IntOut1
) -> None:
    """All of a short loss at once; nothing is computed where a class is none."""
    survey(target, x.shape[1], ignored, found)
    if found[1] < 0:
        likelihoods(x, target, ignored, logs, losses, 0, x.shape[0])
        total = 0.0
        for i in range(losses.size):
            total += losses[i]
        made[0] = total / found[0] if mean else total


@native()
def entropy_slopes(g: In1, logs: In2, target: Int1, ignored: Count, mean: Flag, factors: Out1, out: Out2) -> None:
    """All of its gradient."""
    counted = 0
    for i in range(target.size):
        if target[i] != ignored:
            counted += 1
    # Where no sample counts the mean is NaN, but its gradient is 0.
    shared = F(max(counted, 1) if mean else 1)
    for i in range(g.size):
        factors[i] = g[i] / shared
    likelihood_slopes(logs, target, ignored, factors, out, 0, logs.shape[0])


LARGE: Final = 1 << 17
"""Elements from which several threads are worth a longer way."""


def _is_short(x: Array) -> bool:
    return x.ndim == 2 and x.size < LARGE


@compiled("cross_entropy")
def cross_entropy(
    xp: Namespace, x: Array, target: Array, weight: Array, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Array, Array]:
    if not _applies(x, target, weight, label_smoothing):
        return NotImplemented
    short = settled_cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing)
    if short is not None:
        return short(x, target)
    rows, classes = dense(x).reshape(-1, x.shape[-1]), dense(target).reshape(-1)
    counted = _counted(classes, x.shape[-1], ignore_index)
    logs, losses = np.empty(rows.shape, x.dtype), np.empty(rows.shape[0], x.dtype)
    threads.split(likelihoods, *rows.shape, rows, classes, ignore_index, logs, losses)
    logs = logs.reshape(x.shape)
    if reduction == "none":
        return losses.reshape(target.shape), logs
    summed = losses.sum()
    return summed if reduction == "sum" else np.divide(summed, F(counted)), logs


@bind_layout("cross_entropy")
def settled_cross_entropy(
    x: Array, target: Array, weight: Array, ignore_index: int, reduction: str, label_smoothing: float
) -> Callable[[Any, Any], Any] | None:
    if not _is_short(x) or reduction == "none":
        return None
    shape, mean, empty = x.shape, reduction == "mean", np.empty

    def compute(x: Array, target: Array) -> tuple[Array, Array]:
        logs, losses, made, found = empty(shape, F), empty(shape[0], F), empty(1, F), empty(2, np.int64)
        classes = dense(target)
        entropy(dense(x), classes, ignore_index, mean, logs, losses, made, found)
        if found[1] >= 0:
            raise _no_class(classes, found[1], shape[1])
        return made[0], logs

    return compute


@compiled("cross_entropy_backward")
def cross_entropy_backward(
    xp: Namespace, g: Array, logs: Array, target: Array, weight: Array, ignore_index: int, mean: bool,
    label_smoothing: float,
) -> Array:  # fmt: skip
    if not _applies(logs, target, weight, label_smoothing) or g.dtype.char != "f" or g.size not in (1, target.size):
        return NotImplemented
    short = settled_cross_entropy_backward(g, logs, target, weight, ignore_index, mean, label_smoothing)
    if short is not None:
        return short(g, logs, target)
    rows, classes = dense(logs).reshape(-1, logs.shape[-1]), dense(target).reshape(-1)
    counted = _counted(classes, logs.shape[-1], ignore_index)
    # Where no sample counts the mean is NaN, but its gradient is 0.
    factors = dense(g).reshape(-1) / F(max(counted, 1) if mean else 1)
    out = np.empty(rows.shape, logs.dtype)
    threads.split(likelihood_slopes, *rows.shape, rows, classes, ignore_index, factors, out)
    return out.reshape(logs.shape)


@bind_layout("cross_entropy_backward")
def settled_cross_entropy_backward(
    g: Array, logs: Array, target: Array, weight: Array, ignore_index: int, mean: bool, label_smoothing: float
) -> Callable[[Any, Any, Any], Any] | None:
    if not _is_short(logs):
        return None
    shape, number, empty = logs.shape, g.size, np.empty

    def compute(g: Array, logs: Array, target: Array) -> Array:
        out = empty(shape, F)
        entropy_slopes(dense(g).reshape(-1), dense(logs), dense(target), ignore_index, mean, empty(number, F), out)
        return out

    return compute
