"""Functions whose arguments in PyTorch are others than those of the op behind them, or that are made of several ops."""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol.dtypes import DType, int64
from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported

from ...dispatch import call
from ...modes import no_grad
from ...tensor import Tensor

__all__ = [
    "bilinear",
    "cosine_similarity",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "embedding",
    "glu",
    "gumbel_softmax",
    "log_softmax",
    "one_hot",
    "pairwise_distance",
    "softmax",
    "softmin",
]


def _chosen_dim(name: str, input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    warnings.warn(f"{name} without dim guesses the dimension: name it", UserWarning, stacklevel=3)
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Any:
    """Exponentials along ``dim``, scaled to sum to 1; ``dtype`` converts first."""
    return call("softmax", input, _chosen_dim("softmax", input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Any:
    """:func:`softmax` of ``-input``."""
    return call("softmax", call("neg", input), _chosen_dim("softmin", input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Any:
    """The logarithm of :func:`softmax`, computed without its rounding."""
    return call("log_softmax", input, _chosen_dim("log_softmax", input, dim), dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
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


def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half of a dimension times the sigmoid of the second."""
    extent = input.size(dim)
    if extent % 2:
        raise ArgumentError(f"glu: dimension {dim} of {list(input.shape)} cannot be halved")
    a, b = call("narrow", input, dim, 0, extent // 2), call("narrow", input, dim, extent // 2, extent // 2)
    return call("mul", a, call("sigmoid", b))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """``sum_ij input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]`` for inputs of equal leading shape."""
    return call("bilinear", input1, input2, weight, bias)


# Dropout


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
    return _channels_dropped("dropout3d", 5, input, p, training, inplace)


# Tables


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """The rows of a table that integers name: ``(...)`` and ``(rows, columns)`` give ``(..., columns)``.

    Args:
        padding_idx: a row that receives no gradient.
        max_norm: rows that are looked up and longer than this are shortened first, in the table itself.
        norm_type: the p of that length.
        scale_grad_by_freq: divide each row's gradient by the number of times it was looked up.
    """
    if sparse:
        raise Unsupported("embedding: sparse gradients are not supported by gradwire")
    row = -1
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise ArgumentError(f"embedding: padding_idx {padding_idx} is outside a table of {rows} rows")
        row = padding_idx % rows
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    return call("embedding", weight, input, row, scale_grad_by_freq)


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        lengths = call("norm", weight, norm_type, (1,), True)
        factors = call("mul", call("reciprocal", call("add", lengths, 1e-7)), max_norm)
        long = call("gt", lengths, max_norm)
        touched = call("zeros_like", long)
        call("index_fill_", touched, 0, call("to", call("reshape", input, (-1,)), int64), True)
        call("mul_", weight, call("where", call("logical_and", long, touched), factors, 1.0))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """Each integer as a vector of ``num_classes`` elements with a 1 at its place.

    Without ``num_classes`` there are as many as the largest integer asks for, which costs a round trip.
    """
    if num_classes == -1:
        if not tensor.numel():
            raise ArgumentError("one_hot: without elements, num_classes must be given")
        num_classes = int(call("max", tensor).item()) + 1
    return call("one_hot", tensor, num_classes)


# Lengths and distances


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of the differences along the last dimension; ``eps`` is added to each difference."""
    return call("norm", call("add", call("sub", x1, x2), eps), p, (-1,), keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along ``dim``; their lengths count as ``eps`` at least."""
    return call("cosine_similarity", x1, x2, dim, eps)
