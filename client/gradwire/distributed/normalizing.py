"""Batch normalisation with the statistics of the batches of all ranks."""

from __future__ import annotations

from typing import Any

from .._core.backward.function import Function
from .._core.tensor.tensor import Tensor
from .collectives import run
from .process_group import ProcessGroup


class _Summed(Function):
    """The sum over all ranks, whose derivative is one too: each rank's value is in the results of all."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        found: Tensor = values.clone()
        run("all_reduce_", group, found, "sum")
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        found: Tensor = gradient.clone()
        run("all_reduce_", ctx.group, found, "sum")
        return found, None


def normalize_over_ranks(
    input: Tensor, group: ProcessGroup, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise each channel over the elements of all ranks, then scale and shift it.

    Returns the result, and the means and the unbiased variances of the channels.
    """
    over = [dim for dim in range(input.ndim) if dim != 1]
    shape = [-1 if dim == 1 else 1 for dim in range(input.ndim)]
    own = input.numel() // input.shape[1]
    total = _Summed.apply(input.new_full((1,), own), group)
    mean = _Summed.apply(input.sum(over), group) / total
    centred = input - mean.reshape(shape)
    squares = _Summed.apply((centred * centred).sum(over), group)
    result = centred * (squares / total + eps).rsqrt().reshape(shape)
    if weight is not None:
        result = result * weight.reshape(shape)
    if bias is not None:
        result = result + bias.reshape(shape)
    return result, mean, squares / (total - 1)
