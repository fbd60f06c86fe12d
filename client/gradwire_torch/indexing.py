"""Reading and writing by indices, and tables of embeddings."""

from __future__ import annotations

from typing import Any, Final

import torch

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes, given, kernel
from .memory import ours

BAG_REDUCTIONS: Final = ("sum", "mean", "max")


def _indices(indices: Any) -> list[Any]:
    """uint8 is a mask; None stands for a whole dimension."""
    return [i.bool() if i is not None and i.dtype is gw.uint8 else i for i in indices]


@computes("index.Tensor", "_unsafe_index.Tensor")
def index(self: Any, indices: Any) -> Any:
    if all(i is None for i in indices):
        return self.clone()
    return call("index", self, _indices(indices))


@kernel("_index_put_impl_")
def index_put(
    self: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False, unsafe: bool = False
) -> torch.Tensor:
    """Write values to elements, or add them to these."""
    written = ours(values)
    call("index_put_", ours(self), _indices(given(indices)), written, accumulate)
    return self


@computes("embedding")
def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    return call("embedding", weight, indices, -1, False)


@computes("embedding_dense_backward")
def embedding_dense_backward(
    grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    return call("embedding_backward", grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)


@computes("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> Any:  # fmt: skip
    how = BAG_REDUCTIONS[mode], scale_grad_by_freq, per_sample_weights, include_last_offset, padding_idx
    return call("embedding_bag", weight, indices, offsets, *how)


@computes("_embedding_bag_backward")
def embedding_bag_backward(
    grad: Any, indices: Any, offsets: Any, offset2bag: Any, bag_size: Any, maximum_indices: Any, num_weights: int,
    scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Any = None, padding_idx: int = -1,
) -> Any:  # fmt: skip
    return embedding_bag_dense_backward(
        grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
        per_sample_weights, padding_idx,
    )  # fmt: skip


@computes("_embedding_bag_dense_backward")
def embedding_bag_dense_backward(
    grad: Any, indices: Any, offset2bag: Any, bag_size: Any, maximum_indices: Any, num_weights: int,
    scale_grad_by_freq: bool, mode: int, per_sample_weights: Any = None, padding_idx: int = -1,
) -> Any:  # fmt: skip
    """Each row of the table gets what came to the bags that it is in."""
    if BAG_REDUCTIONS[mode] == "max":
        filled = (bag_size != 0).unsqueeze(1).to(grad.dtype)
        rows = maximum_indices.long().clamp(min=0)
        return grad.new_zeros((num_weights, grad.shape[1])).scatter_add(0, rows, grad * filled)
    if BAG_REDUCTIONS[mode] == "mean":
        grad = grad / bag_size.clamp(min=1).unsqueeze(1).to(grad.dtype)
    rows = grad.index_select(0, offset2bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return call("embedding_backward", rows, indices, num_weights, padding_idx, scale_grad_by_freq)


@computes("_embedding_bag_per_sample_weights_backward")
def embedding_bag_per_sample_weights_backward(
    grad: Any, weight: Any, indices: Any, offsets: Any, offset2bag: Any, mode: int, padding_idx: int = -1
) -> Any:
    found = (grad.index_select(0, offset2bag) * weight.index_select(0, indices)).sum(1)
    return found if padding_idx < 0 else found.masked_fill(indices == padding_idx, 0)


def _unique(found: Any, inverse: bool, counts: bool) -> Any:
    """All three results, where those that were not asked for are empty."""
    made = iter((found,) if isinstance(found, gw.Tensor) else found)
    values = next(made)
    return values, *(next(made) if asked else values.new_empty(0, dtype=gw.int64) for asked in (inverse, counts))


@computes("_unique2")
def unique2(self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return _unique(call("unique", self, sorted, return_inverse, return_counts, None), return_inverse, return_counts)


@computes("_unique")
def unique(self: Any, sorted: bool = True, return_inverse: bool = False) -> Any:
    return _unique(call("unique", self, sorted, return_inverse, False, None), return_inverse, False)[:2]


@computes("unique_dim")
def unique_dim(
    self: Any, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    return _unique(call("unique", self, sorted, return_inverse, return_counts, dim), return_inverse, return_counts)


@computes("unique_consecutive")
def unique_consecutive(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    found = call("unique_consecutive", self, return_inverse, return_counts, dim)
    return _unique(found, return_inverse, return_counts)


@computes("unique_dim_consecutive")
def unique_dim_consecutive(self: Any, dim: int, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return unique_consecutive(self, return_inverse, return_counts, dim)


@computes("repeat_interleave.Tensor")
def repeat_interleave(repeats: Any, *, output_size: int | None = None) -> Any:
    return gw.repeat_interleave(repeats, output_size=output_size)


@computes("unfold_backward")
def unfold_backward(grad_in: Any, input_sizes: Any, dim: int, size: int, step: int) -> Any:
    return call("unfold_backward", grad_in, tuple(input_sizes), dim, size, step)
