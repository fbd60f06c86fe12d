"""Bags of rows, reduced by adding rows at their bag's place."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.dtypes import int64
from gradwire_protocol.errors import KernelError

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import waits
from ..numerics.scatter import add_slices, check_range, combine_at, places_of_slices
from ..runtime.arrays import Array, Namespace, Native


def _bags_of(xp: Namespace, indices: Array, offsets: Array, include_last: bool) -> Array:
    """The bag of each index."""
    if not waits(xp):
        if offsets.size and int(offsets[0]) != 0:
            raise KernelError(f"embedding_bag: the first offset must be 0, not {int(offsets[0])}")
        if offsets.size and int(offsets[-1]) > indices.size:
            raise KernelError(f"embedding_bag: offset {int(offsets[-1])} is beyond the {indices.size} indices")
        if bool((offsets[1:] < offsets[:-1]).any()):
            raise KernelError("embedding_bag: the offsets must be in ascending order")
    starts = offsets[:-1] if include_last else offsets
    found = xp.searchsorted(starts, xp.arange(indices.size), side="right") - 1
    return xp.maximum(found, 0).astype(np.int64)


def _cuts(mode: str, padding_idx: int, dtype: Native) -> bool:
    """Whether what lies behind the last offset is dropped, as PyTorch's quick way does; else the last bag has it."""
    return mode != "max" and padding_idx < 0 and dtype.itemsize <= 4


@kernel("embedding_bag")
def embedding_bag(
    xp: Namespace, weight: Array, indices: Array, offsets: Array, mode: str, scale_grad_by_freq: bool,
    factors: Array | None, include_last_offset: bool, padding_idx: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    check_range(xp, "embedding_bag", indices, 0, weight.shape[0])
    bags = len(offsets) - include_last_offset
    bag = _bags_of(xp, indices, offsets, include_last_offset)
    dtype = weight.dtype
    if dtype.itemsize == 2:
        weight = weight.astype(xp.float32)
    used = counted = indices != padding_idx
    if include_last_offset and len(offsets) and _cuts(mode, padding_idx, dtype):
        used = used & (xp.arange(indices.size) < offsets[-1])
        # What comes behind the last offset is in no sum, yet PyTorch counts it where the last bag takes its mean.
        counted = counted if mode == "mean" else used
    sizes = xp.zeros(bags, np.int64)
    if bags == 0:
        return xp.zeros((0, weight.shape[1]), weight.dtype), bag, sizes, xp.zeros((0, _width(weight, mode)), np.int64)
    sizes = xp.bincount(bag, weights=counted.astype(np.float64), minlength=bags)[:bags].astype(np.int64)
    rows = xp.take(weight, indices, axis=0)
    if mode == "max":
        out, places = _largest(xp, rows, indices, bag, used, bags)
        return out, bag, sizes, places
    scale = used if factors is None else used * factors
    rows *= scale.astype(weight.dtype)[:, None]
    out = xp.zeros((bags, weight.shape[1]), weight.dtype)
    add_slices(xp, out, 0, bag, rows)
    if mode == "mean":
        out = out / xp.maximum(sizes, 1).astype(out.dtype)[:, None]
    return out, bag, sizes, xp.zeros((bags, 0), np.int64)


def _width(weight: Any, mode: str) -> int:
    return int(weight.shape[1]) if mode == "max" else 0


def _largest(xp: Namespace, rows: Array, indices: Array, bag: Array, used: Array, bags: int) -> tuple[Array, Array]:
    """The largest of each bag, column by column, and the row it comes from: the first of equal ones."""
    shape = (bags, rows.shape[1])
    out = xp.full(shape, -np.inf, rows.dtype)
    candidates = xp.where(used[:, None], rows, -np.inf)
    places = places_of_slices(xp, shape, 0, bag)
    combine_at(xp, out, places, candidates, "maximum")
    order = xp.broadcast_to(xp.arange(len(indices))[:, None], rows.shape)
    hit = (candidates == xp.take(out, bag, axis=0)) & used[:, None]
    first = xp.full(shape, len(indices), np.int64)
    combine_at(xp, first, places, xp.where(hit, order, len(indices)), "minimum")
    found = first < len(indices)
    named = xp.concatenate([indices.astype(np.int64), xp.zeros(1, np.int64)])
    return xp.where(found, out, 0), xp.take(named, xp.where(found, first, len(indices)))


def _within(s: Saved) -> Tensor:
    """Whether each index is in a bag: with ``include_last_offset`` those behind the last one are not."""
    count = s.meta("indices").shape[0]
    places = s.indices.engine.call("arange", 0, count, 1, dtype=int64, device=s.indices.device)
    return F.lt(places, F.select(s.offsets, 0, -1))


def _wanted(s: Saved) -> Tensor:
    """A factor of each index: 0 for padding, and for what is in no bag."""
    used = s.indices != s.padding_idx
    weight = s.meta("weight")
    if s.include_last_offset and _cuts(s.mode, s.padding_idx, weight.dtype):
        used = F.logical_and(used, _within(s))
    return F.to(used, dtype=weight.dtype)


def _by_table(s: Saved, g: Tensor, *_: object) -> Tensor:
    rows, dtype = s.meta("weight").shape[0], g.dtype
    if not g.shape[0]:
        return g.engine.call("zeros", s.meta("weight").shape, dtype=dtype, device=g.device)
    if s.mode == "max":
        table = g.engine.call("zeros", s.meta("weight").shape, dtype=dtype, device=g.device)
        filled = F.unsqueeze(F.to(s.result2 > 0, dtype=dtype), -1)
        return F.scatter_add(table, 0, s.result3, g * filled)
    if s.mode == "mean":
        g = g / F.unsqueeze(F.clamp_min(F.to(s.result2, dtype=dtype), 1), -1)
    each = F.index_select(g, 0, s.result1)
    if s.per_sample_weights is not None:
        each = each * F.unsqueeze(s.per_sample_weights, -1)
    if s.include_last_offset and s.mode != "mean" and _cuts(s.mode, s.padding_idx, s.meta("weight").dtype):
        each = each * F.unsqueeze(F.to(_within(s), dtype=dtype), -1)
    return F.embedding_backward(each, s.indices, rows, s.padding_idx, s.scale_grad_by_freq)


def _by_factors(s: Saved, g: Tensor, *_: object) -> Tensor:
    products = F.index_select(g, 0, s.result1) * F.index_select(s.weight, 0, s.indices)
    return F.sum(products, (1,)) * _wanted(s)


derivative(
    "embedding_bag",
    weight=("indices offsets per_sample_weights result1 result2 result3", _by_table),
    per_sample_weights=("weight indices offsets result1", _by_factors),
)


@kernel("embedding_renorm_")
def embedding_renorm_(xp: Namespace, table: Array, indices: Array, max_norm: float, norm_type: float) -> None:
    check_range(xp, "embedding_renorm_", indices, 0, table.shape[0])
    named = xp.unique(indices.reshape(-1))
    rows = table[named].astype(xp.float32 if table.dtype.itemsize == 2 else table.dtype)
    if norm_type == np.inf:
        lengths = xp.abs(rows).max(axis=1) if rows.shape[1] else xp.zeros(len(rows), rows.dtype)
    elif norm_type == 0:
        lengths = (rows != 0).sum(axis=1).astype(rows.dtype)
    else:
        lengths = (xp.abs(rows) ** norm_type).sum(axis=1) ** (1 / norm_type)
    factors = xp.where(lengths > max_norm, max_norm / (lengths + 1e-7), 1)
    table[named] = (rows * factors[:, None]).astype(table.dtype)
