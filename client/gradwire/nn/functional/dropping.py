"""Dropout: in training, some elements are lost at random."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ...creation import empty
from ...dispatch import call
from ...modes import no_grad
from ...tensor import Tensor

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "rrelu",
    "rrelu_",
]

SATURATION = 1.7580993408473766
"""The scale times the alpha of :func:`selu`: what it gives far below zero, with a minus."""


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``; without training, nothing."""
    return _dropped("dropout", input, p, training, inplace)


def _dropped(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    if not 0.0 <= p <= 1.0:
        raise ArgumentValueError(f"{name}: p is a probability, from 0 to 1, not {p}")
    if not training:
        return input
    result, mask = call(name, input, float(p), True)
    if not inplace:
        return result
    # In place, the history is that of the product with the mask.
    call("mul_", input, call("mul", mask, 1.0 / (1.0 - p) if p < 1.0 else 0.0).to(input.dtype))
    return input


def _channels_dropped(name: str, ndim: int, input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    """Drop whole channels of a batch of ``ndim`` dimensions, or of one sample, which has one less."""
    if input.ndim not in (ndim - 1, ndim):
        raise ArgumentError(f"{name} takes {ndim - 1} or {ndim} dimensions, the input's shape is {list(input.shape)}")
    return _one_or_many_dropped(ndim, input, p, training, inplace)


def _one_or_many_dropped(ndim: int, input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    batched = input.ndim == ndim
    source = input if batched else call("unsqueeze", input, 0)
    result = _dropped("feature_dropout", source, p, training, inplace)
    if inplace or result is source:
        return input
    return result if batched else call("squeeze", result, 0)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of ``(N, C, L)`` or ``(C, L)`` with probability ``p`` and scale the others."""
    return _channels_dropped("dropout1d", 3, input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of ``(N, C, H, W)`` with probability ``p`` and scale the others.

    As in PyTorch, an input of three dimensions is a batch, ``(N, C, L)``.
    """
    return _dropped("feature_dropout", input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` with probability ``p`` and scale the others."""
    if input.ndim not in (4, 5):
        warnings.warn(
            f"dropout3d takes 4 or 5 dimensions, the input's shape is {list(input.shape)}: it is taken for one sample",
            stacklevel=2,
        )
    return _one_or_many_dropped(5, input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Set elements to what :func:`selu` has far below zero, with probability ``p``, and move all so that mean and
    variance stay (Klambauer et al., 2017)."""
    return _saturated("alpha_dropout", input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """:func:`alpha_dropout` of whole channels, which are the second dimension."""
    if training and input.ndim < 2:
        raise ArgumentError(f"feature_alpha_dropout takes at least 2 dimensions, the shape is {list(input.shape)}")
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _saturated("feature_alpha_dropout", input, shape, p, training, inplace)


def _saturated(name: str, input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Any:
    if not 0.0 <= p <= 1.0:
        raise ArgumentValueError(f"{name}: p is a probability, from 0 to 1, not {p}")
    if p == 0 or not training or not input.numel():
        return input
    if p == 1:
        if not inplace:
            return call("mul", input, 0.0)
        call("mul_", input, 0.0)
        return input
    scale = 1 / math.sqrt((SATURATION**2 * p + 1) * (1 - p))
    with no_grad():
        kept = call("bernoulli", empty(shape, dtype=input.dtype, device=input.device), 1 - p)
        shift = call("add", call("mul", kept, SATURATION * scale), SATURATION * scale * (p - 1))
        factor = call("mul", kept, scale)
    if not inplace:
        return call("add", call("mul", input, factor), shift)
    call("mul_", input, factor)
    call("add_", input, shift)
    return input


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """``x`` where positive, else ``slope * x``: in training with slopes uniform in [lower, upper), else their mean."""
    result, slopes = call("rrelu", input, float(lower), float(upper), training)
    if not inplace:
        return result
    # In place, the history is that of the product with the slopes.
    call("mul_", input, slopes)
    return input


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    """:func:`rrelu` in place."""
    return rrelu(input, lower, upper, training, True)
