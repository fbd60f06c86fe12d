"""Dropout: in training, some elements become zero at random."""

from __future__ import annotations

from typing import ClassVar

from gradwire_protocol.errors import ArgumentValueError

from .._core.tensor.tensor import Tensor
from . import functional as F
from .variants import Variant


class _DropoutNd(Variant):
    function: ClassVar[str]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentValueError(f"p is a probability, from 0 to 1, not {p}")
        self.p: float = p
        self.inplace: bool = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements in training; in evaluation return the input."""
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd, function="dropout"):
    """Zero each element with probability ``p``, and scale the others by ``1 / (1 - p)``."""


class Dropout1d(_DropoutNd, function="dropout1d"):
    """Zero whole channels of ``(N, C, L)`` or ``(C, L)`` with probability ``p``, and scale the others."""


class Dropout2d(_DropoutNd, function="dropout2d"):
    """Zero whole channels of ``(N, C, H, W)`` with probability ``p``, and scale the others."""


class Dropout3d(_DropoutNd, function="dropout3d"):
    """Zero whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` with probability ``p``, and scale the others."""


class AlphaDropout(_DropoutNd, function="alpha_dropout"):
    """Set elements to what :class:`SELU` has far below zero, with probability ``p``; mean and variance stay."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements in training; in evaluation return the input."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd, function="feature_alpha_dropout"):
    """:class:`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop channels in training; in evaluation return the input."""
        return F.feature_alpha_dropout(input, self.p, self.training)
