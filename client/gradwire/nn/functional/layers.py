"""Functions whose arguments in PyTorch are others than those of the op behind them, or that are made of several ops."""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol.dtypes import DType

from ...dispatch import call
from ...modes import no_grad
from ...tensor import Tensor

__all__ = [
    "bilinear",
    "cosine_similarity",
    "glu",
    "gumbel_softmax",
    "log_softmax",
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
    return call("glu", input, dim)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """``sum_ij input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]`` for inputs of equal leading shape."""
    return call("bilinear", input1, input2, weight, bias)


# Lengths and distances


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of the differences along the last dimension; ``eps`` is added to each difference."""
    return call("norm", call("add", call("sub", x1, x2), eps), p, (-1,), keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along ``dim``; their lengths count as ``eps`` at least."""
    return call("cosine_similarity", x1, x2, dim, eps)
