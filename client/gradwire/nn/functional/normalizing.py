"""Normalisations that are a few ops."""

from __future__ import annotations

from math import prod
from typing import Any

from gradwire_protocol.dtypes import complex128
from gradwire_protocol.errors import ArgumentValueError

from ...dispatch import call
from ...tensor import Tensor

__all__ = ["local_response_norm", "rms_norm"]


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Any:
    """Divide by the root of the mean square over the last dimensions, which are ``normalized_shape``; then multiply by
    ``weight``. ``eps``, by default the dtype's smallest step from 1, is added to the mean square. Of complex numbers
    the squares are complex, too.
    """
    shape = tuple(normalized_shape)
    if not input.is_complex():
        return call("rms_norm", input, shape, weight, eps)
    if tuple(input.shape[-len(shape) :]) != shape:
        raise ArgumentValueError(f"rms_norm: an input of shape {list(input.shape)} does not end in {list(shape)}")
    if eps is None:
        eps = 2.0**-52 if input.dtype is complex128 else 2.0**-23
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    squares = call("mean", call("pow", input, 2), dims, True)
    scaled = call("mul", input, call("rsqrt", call("add", squares, eps)))
    return scaled if weight is None else call("mul", scaled, weight)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """``x / (k + alpha * mean of squares)**beta`` for ``(N, C, ...)``, the mean over ``size`` neighbouring channels
    (Krizhevsky et al., 2012); zeros stand beyond the first and the last.

    Raises:
        ValueError: for fewer than three dimensions.
    """
    if input.ndim < 3:
        raise ArgumentValueError(f"local_response_norm takes at least 3 dimensions, the shape is {list(input.shape)}")
    if not input.numel():
        return input
    n, c, *rest = input.shape
    # All dimensions behind the channels are one here: a window spans channels only.
    squares = call("reshape", call("mul", input, input), (n, 1, c, prod(rest)))
    padded = call("pad", squares, (0, 0, size // 2, (size - 1) // 2), "constant", None)
    means = call("reshape", call("avg_pool2d", padded, (size, 1), (1, 1)), tuple(input.shape))
    divisor = call("pow", call("add", call("mul", means, alpha), k), beta)
    return call("div", input, divisor)
