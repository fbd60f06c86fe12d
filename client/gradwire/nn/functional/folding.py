"""Images as columns of windows, and back."""

from __future__ import annotations

from typing import Any

from ...dispatch import call
from ...tensor import Tensor

__all__ = ["fold", "unfold"]


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The windows of ``(N, C, H, W)`` or ``(C, H, W)`` as columns: ``(N, C * KH * KW, windows)``."""
    return call("im2col", input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Columns added up where their windows lie: ``(N, C * KH * KW, windows)`` gives ``(N, C, *output_size)``.

    This is not the inverse of :func:`unfold` where windows overlap, but its transpose.
    """
    size = (output_size,) * 2 if isinstance(output_size, int) else output_size
    return call("col2im", input, size, kernel_size, dilation, padding, stride)
