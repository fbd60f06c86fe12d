"""Losses and samplers as ``torch`` itself offers them, beside ``torch.nn.functional``: the reduction and modes are
numbers there (0 none, which is the default, 1 the mean, 2 the sum)."""

from __future__ import annotations

from typing import Any, Final

from gradwire_protocol.errors import ArgumentError

from ..._core.dispatch.dispatch import call
from ..._core.tensor.tensor import Tensor
from .. import functional

_REDUCTIONS: Final = ("none", "mean", "sum")
_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDING: Final = ("zeros", "border", "reflection")


def _named(what: str, names: tuple[str, ...], number: int) -> str:
    if type(number) is not int or not 0 <= number < len(names):
        raise ArgumentError(f"{what} is a number from 0 to {len(names) - 1} ({', '.join(names)}), not {number!r:.40}")
    return names[number]


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """:func:`~gradwire.nn.functional.binary_cross_entropy_with_logits`, with a reduction by its number."""
    named = _named("reduction", _REDUCTIONS, reduction)
    return functional.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, reduction=named)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """:func:`~gradwire.nn.functional.cosine_embedding_loss`, with a reduction by its number."""
    named = _named("reduction", _REDUCTIONS, reduction)
    return functional.cosine_embedding_loss(input1, input2, target, margin, reduction=named)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """:func:`~gradwire.nn.functional.ctc_loss`, with a reduction by its number."""
    named = _named("reduction", _REDUCTIONS, reduction)
    return functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, named, zero_infinity)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """:func:`~gradwire.nn.functional.hinge_embedding_loss`, with a reduction by its number."""
    named = _named("reduction", _REDUCTIONS, reduction)
    return functional.hinge_embedding_loss(input, target, margin, reduction=named)


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """:func:`~gradwire.nn.functional.kl_div`, with a reduction by its number."""
    return call("kl_div", input, target, _named("reduction", _REDUCTIONS, reduction), log_target)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """:func:`~gradwire.nn.functional.margin_ranking_loss`, with a reduction by its number."""
    named = _named("reduction", _REDUCTIONS, reduction)
    return functional.margin_ranking_loss(input1, input2, target, margin, reduction=named)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """:func:`~gradwire.nn.functional.poisson_nll_loss`, with a reduction by its number."""
    named = _named("reduction", _REDUCTIONS, reduction)
    return functional.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=named)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = 0,
) -> Tensor:  # fmt: skip
    """:func:`~gradwire.nn.functional.triplet_margin_loss`, with a reduction by its number."""
    named = _named("reduction", _REDUCTIONS, reduction)
    return functional.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=named)


def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """:func:`~gradwire.nn.functional.grid_sample` of images, with modes by their numbers."""
    mode, padding = _named("mode", _MODES, interpolation_mode), _named("padding_mode", _PADDING, padding_mode)
    return functional.grid_sample(input, grid, mode, padding, align_corners)


grid_sampler_3d = grid_sampler_2d
