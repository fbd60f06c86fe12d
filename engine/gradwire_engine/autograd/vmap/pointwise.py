"""Elementwise ops on mapped tensors that need more than their samples aligned, and lookups of single numbers."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..functional import F
from ..tensor import Tensor
from .level import VmapLevel, rule


@rule("where")
def where(x: VmapLevel, condition: Tensor, first: Any, second: Any) -> Tensor:
    dtype = x.inferred.outs[0].dtype
    tensors = [v for v in (condition, first, second) if isinstance(v, Tensor)]
    rank = max(t.ndim for t in tensors)
    sides = [F.to(v, dtype=dtype) if isinstance(v, Tensor) and v.dtype is not dtype else v for v in (first, second)]
    if not any(isinstance(v, Tensor) for v in sides):
        return F.to(x.call(x.aligned(condition, rank), *sides), dtype=dtype)
    return x.call(*[x.aligned(v, rank) for v in (condition, *sides)])


@rule("masked_fill")
def masked_fill(x: VmapLevel, tensor: Tensor, mask: Tensor, value: Any) -> Tensor:
    rank = max(tensor.ndim, mask.ndim)
    if not x.has(value):
        # Where the mask alone is mapped, the result has more elements than self.
        source = tensor if x.has(tensor) else x.wrap(x.front(tensor), tensor.meta)
        return x.call(x.aligned(source, rank), x.aligned(mask, rank), value)
    filled = F.where(mask, F.to(value, dtype=tensor.dtype), tensor)
    return filled


@rule("masked_fill_")
def masked_fill_(x: VmapLevel, tensor: Tensor, mask: Tensor, value: Any) -> None:
    if x.has(value):
        F.copy_(x.inside(tensor), x.front(F.where(mask, F.to(value, dtype=tensor.dtype), tensor)))
    else:
        x.call(x.inside(tensor), x.aligned(mask, tensor.ndim), value)


@rule("copy_")
def copy_(x: VmapLevel, target: Tensor, source: Tensor, *options: bool) -> None:
    x.call(x.inside(target), x.aligned(source, target.ndim), *options)


@rule("fill_")
def fill_(x: VmapLevel, target: Tensor, value: Any) -> None:
    if x.has(value):
        F.copy_(x.inside(target), x.aligned(value, target.ndim))
    else:
        x.call(x.inside(target), value)


@rule("prelu")
def prelu(x: VmapLevel, tensor: Tensor, weight: Tensor) -> Tensor:
    if tensor.ndim >= 2 and weight.numel != 1:
        weight = F.reshape(weight, (-1, *(1,) * (tensor.ndim - 2)))
    elif weight.numel == 1:
        weight = F.reshape(weight, ())
    return F.where(F.gt(tensor, 0), tensor, weight * tensor)


@rule("one_hot")
def one_hot(x: VmapLevel, tensor: Tensor, num_classes: int) -> Tensor:
    if num_classes < 0:
        raise ArgumentError("one_hot: pass num_classes inside vmap, because it cannot depend on the samples")
    return x.call(x.inside(tensor), num_classes)


@rule("bucketize")
def bucketize(x: VmapLevel, tensor: Any, boundaries: Tensor, *options: bool) -> Tensor:
    if x.has(boundaries):
        return F.searchsorted(boundaries, tensor, *options)
    return x.call(x.inside(tensor), boundaries, *options)


@rule("searchsorted")
def searchsorted(x: VmapLevel, ordered: Tensor, wanted: Any, *options: bool) -> Tensor:
    if ordered.ndim > 1:
        return x.call(x.front(ordered), x.front(wanted), *options)
    if not x.has(ordered):
        return x.call(ordered, x.inside(wanted), *options)
    if not isinstance(wanted, Tensor):
        wanted = x.engine.call("full", (), wanted, dtype=ordered.dtype, device=ordered.device)
    return x.call(x.inside(ordered), F.reshape(x.front(wanted), (x.size, wanted.numel)), *options)
