"""Losses that PyTorch computes in one kernel, distances, and likelihoods of sequences."""

from __future__ import annotations

from typing import Any, Final

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes, gradients_by
from .functions import REDUCTIONS

_MODES: Final = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@computes("_cdist_forward")
def cdist(x1: Any, x2: Any, p: float, compute_mode: int | None) -> Any:
    return call("cdist", x1, x2, p, _MODES[compute_mode or 0])


@computes("_cdist_backward")
def cdist_backward(grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    """By the first points; the others' is the same with the two exchanged."""
    return gradients_by(lambda a, b: call("cdist", a, b, p, _MODES[2]), [x1, x2], [0], grad)[0]


@computes("_pdist_forward")
def pdist(self: Any, p: float = 2.0) -> Any:
    return call("pdist", self, p)


@computes("_pdist_backward")
def pdist_backward(grad: Any, self: Any, p: float, pdist: Any) -> Any:
    return gradients_by(lambda a: call("pdist", a, p), [self], [0], grad)[0]


def _nll_loss(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The loss, and the sum of the weights that a mean was divided by."""
    loss = call("nll_loss", self, target, weight, ignore_index, REDUCTIONS[reduction])
    if REDUCTIONS[reduction] == "none":
        return loss, self.new_zeros(())
    counted = target != ignore_index
    if weight is None:
        return loss, counted.sum().to(self.dtype)
    classes = gw.where(counted, target, 0).reshape(-1)
    weights = call("index_select", weight, 0, classes).reshape(tuple(target.shape))
    return loss, (weights * counted).sum()


computes("nll_loss_forward", "nll_loss2d_forward")(_nll_loss)


@computes("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    """Minus each sample's weight, at the class of its target."""
    dim = 1 if self.ndim > 1 else 0
    counted = target.ne(ignore_index)
    classes = gw.where(counted, target, 0)
    each = -grad_output / total_weight if REDUCTIONS[reduction] == "mean" else -grad_output
    if weight is not None:
        each = each * call("index_select", weight, 0, classes.reshape(-1)).reshape(tuple(target.shape))
    values = gw.where(counted, each, 0.0).to(self.dtype)
    return gw.zeros_like(self).scatter(dim, classes.unsqueeze(dim), values.unsqueeze(dim))


@computes("multilabel_margin_loss_forward")
def multilabel_margin_loss(self: Any, target: Any, reduction: int) -> Any:
    """The loss, and which classes a target names."""
    classes = self.shape[-1] if self.ndim else 1
    places = target.reshape((*target.shape[:-1], classes))
    listed = gw.cumprod((places >= 0).long(), -1).bool()
    spread = self.new_zeros((*places.shape[:-1], classes + 1))
    named = spread.scatter(-1, gw.where(listed, places, classes), 1.0)[..., :classes].reshape(tuple(target.shape))
    loss = gw.nn.functional.multilabel_margin_loss(self, target, reduction=REDUCTIONS[reduction])
    return loss, named.clone()


@computes("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(grad_output: Any, self: Any, target: Any, reduction: int, is_target: Any) -> Any:
    return gradients_by(multilabel_margin_loss, [self, target, reduction], [0], grad_output)[0]


def _each_ctc_loss(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int, zero_infinity: bool) -> Any:
    return gw.nn.functional.ctc_loss(log_probs, targets, inputs, lengths, blank, "none", zero_infinity)


@computes("_ctc_loss")
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, zero_infinity: bool = False
) -> Any:
    """Each sequence's loss. What PyTorch keeps beside it for its derivative is computed again in that."""
    found = _each_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    return found, log_probs.new_empty(0)


@computes("_ctc_loss_backward")
def ctc_loss_backward(
    grad: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, neg_log_likelihood: Any,
    log_alpha: Any, blank: int, zero_infinity: bool = False,
) -> Any:  # fmt: skip
    given = [log_probs, targets, input_lengths, target_lengths, blank, zero_infinity]
    return gradients_by(_each_ctc_loss, given, [0], grad)[0]
