"""Linear maps, normalisation, folding and dropout, with PyTorch's arguments."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from gradwire_protocol.dtypes import DType, complex128
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..._core.context.argument_types import Extents
from ..._core.context.modes import no_grad
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import empty
from ..._core.tensor.tensor import Tensor

__all__ = [
    "alpha_dropout", "bilinear", "cosine_similarity", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "feature_alpha_dropout", "fold", "glu", "gumbel_softmax", "local_response_norm", "log_softmax", "pairwise_distance",
    "rms_norm", "rrelu", "rrelu_", "softmax", "softmin", "unfold",
]  # fmt: skip


def _chosen_dim(name: str, input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    warnings.warn(f"{name} without dim guesses the dimension: name it", UserWarning, stacklevel=3)
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """Exponentials along ``dim``, scaled to sum to 1; ``dtype`` converts first."""
    return call("softmax", input, _chosen_dim("softmax", input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """:func:`softmax` of ``-input``."""
    return call("softmax", call("neg", input), _chosen_dim("softmin", input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The logarithm of :func:`softmax`, computed without its rounding."""
    return call("log_softmax", input, _chosen_dim("log_softmax", input, dim), dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample from the distribution that logits describe, as a point of the simplex that gradients flow through.

    With ``hard`` the sample is one-hot, and its gradient that of the soft one.
    """
    with no_grad():
        drawn = call("empty_like", logits)
        call("exponential_", drawn)
        noise = call("neg", call("log", drawn))
    soft = call("softmax", call("div", call("add", logits, noise), tau), dim)
    if not hard:
        return soft
    index = call("argmax", soft, dim, True)
    one = call("scatter", call("zeros_like", soft), dim, index, 1.0)
    return call("add", call("sub", one, call("detach", soft)), soft)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension times the sigmoid of the second."""
    return call("glu", input, dim)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum_ij input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]`` for inputs of equal leading shape."""
    return call("bilinear", input1, input2, weight, bias)


# Lengths and distances


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of the differences along the last dimension; ``eps`` is added to each difference."""
    return call("norm", call("add", call("sub", x1, x2), eps), p, (-1,), keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along ``dim``; their lengths count as ``eps`` at least."""
    return call("cosine_similarity", x1, x2, dim, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
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


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
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


def unfold(
    input: Tensor, kernel_size: Extents, dilation: Extents = 1, padding: Extents = 0, stride: Extents = 1
) -> Tensor:
    """The windows of ``(N, C, H, W)`` or ``(C, H, W)`` as columns: ``(N, C * KH * KW, windows)``."""
    return call("im2col", input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: Extents,
    kernel_size: Extents,
    dilation: Extents = 1,
    padding: Extents = 0,
    stride: Extents = 1,
) -> Tensor:
    """Columns added up where their windows lie: ``(N, C * KH * KW, windows)`` gives ``(N, C, *output_size)``.

    This is not the inverse of :func:`unfold` where windows overlap, but its transpose.
    """
    size = (output_size,) * 2 if isinstance(output_size, int) else output_size
    return call("col2im", input, size, kernel_size, dilation, padding, stride)


SATURATION = 1.7580993408473766
"""The scale times the alpha of :func:`selu`: what it gives far below zero, with a minus."""


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
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


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(N, C, L)`` or ``(C, L)`` with probability ``p`` and scale the others."""
    return _channels_dropped("dropout1d", 3, input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(N, C, H, W)`` with probability ``p`` and scale the others.

    As in PyTorch, an input of three dimensions is a batch, ``(N, C, L)``.
    """
    return _dropped("feature_dropout", input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` with probability ``p`` and scale the others."""
    if input.ndim not in (4, 5):
        warnings.warn(
            f"dropout3d takes 4 or 5 dimensions, the input's shape is {list(input.shape)}: it is taken for one sample",
            stacklevel=2,
        )
    return _one_or_many_dropped(5, input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set elements to what :func:`selu` has far below zero, with probability ``p``, and move all so that mean and
    variance stay (Klambauer et al., 2017)."""
    return _saturated("alpha_dropout", input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
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
) -> Tensor:
    """``x`` where positive, else ``slope * x``: in training with slopes uniform in [lower, upper), else their mean."""
    result, slopes = call("rrelu", input, float(lower), float(upper), training)
    if not inplace:
        return result
    # In place, the history is that of the product with the slopes.
    call("mul_", input, slopes)
    return input


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """:func:`rrelu` in place."""
    return rrelu(input, lower, upper, training, True)
