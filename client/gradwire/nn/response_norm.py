"""Normalisation over neighbouring channels."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from . import functional as F
from .module import Module


class LocalResponseNorm(Module):
    """Divide by ``(k + alpha * mean of squares)**beta``, the mean over ``size`` neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        """``(N, C, ...)`` to the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """:class:`LocalResponseNorm` of images as Torch7 had it: the channel is always in the middle of the window, which
    of an even ``size`` has one channel less, and the first channel stays in the sums of all that come after."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Any) -> Any:
        """``(N, C, H, W)`` to the same shape."""
        if input.ndim != 4:
            raise ArgumentValueError(f"CrossMapLRN2d takes 4 dimensions, the input's shape is {list(input.shape)}")
        reach = (self.size - 1) // 2 + 1
        squares = input * input
        n, channels, *extents = squares.shape
        padded = F.pad(squares, (0, 0, 0, 0, reach - 1, reach - 1)).reshape(n, 1, channels + 2 * reach - 2, -1)
        width = 2 * reach - 1
        sums = (F.avg_pool2d(padded, (width, 1), 1) * width).reshape(n, channels, *extents)
        if channels > reach:
            # As in PyTorch, the first channel stays in the sum once it has entered.
            first = squares[:, :1].expand(n, channels - reach, *extents)
            sums = sums + F.pad(first, (0, 0, 0, 0, reach, 0))
        return input / (sums * (self.alpha / self.size) + self.k) ** self.beta
