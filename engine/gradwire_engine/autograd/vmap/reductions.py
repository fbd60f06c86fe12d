"""Reductions and sorting on mapped tensors that take no dimension, or do more than work along it."""

from __future__ import annotations

from typing import Any

from ..functional import F
from ..tensor import Tensor
from .level import VmapLevel, rule, sample_by_sample
from .views import shifted


@rule("max", "min")
def extreme(x: VmapLevel, tensor: Tensor) -> Any:
    inner = x.inside(tensor)
    dims = tuple(range(1, tensor.ndim + 1))
    if _wants_gradient(x, tensor) or not dims:
        return sample_by_sample(x, [tensor])
    return x.engine.call("amax" if x.entry.op.name == "max" else "amin", inner, dims)


def _wants_gradient(x: VmapLevel, tensor: Tensor) -> bool:
    """Whether the result will be differentiated: ties and NaN are shared out as no op along a dimension does."""
    return x.engine.grad_enabled and tensor.requires_grad


@rule("median", "nanmedian")
def median(x: VmapLevel, tensor: Tensor) -> Any:
    if _wants_gradient(x, tensor) or not tensor.numel:  # no dimension of extent 0 has a median
        return sample_by_sample(x, [tensor])
    flat = F.reshape(x.inside(tensor), (x.size, tensor.numel))
    return x.engine.call(f"{x.entry.op.name}_dim", flat, 1)[0]


@rule("quantile", "nanquantile")
def quantile(x: VmapLevel, tensor: Tensor, q: Any, dim: int | None, *options: Any) -> Any:
    if x.has(q) or not x.has(tensor):
        return sample_by_sample(x, [tensor, q, dim, *options])
    inner = x.inside(tensor)
    if dim is None or tensor.ndim == 0:
        inner, at, kept = F.reshape(inner, (x.size, tensor.numel)), 1, False
    else:
        at, kept = shifted(dim, tensor.ndim), options[0]
    found = x.call(inner, q, at, kept, *options[1:])
    # Several quantiles are the first dimension of the result, before the samples.
    return F.movedim(found, 0, 1) if isinstance(q, Tensor) and q.ndim else found


@rule("msort")
def msort(x: VmapLevel, tensor: Tensor) -> Tensor:
    return F.sort(x.inside(tensor), 1)[0] if tensor.ndim else F.clone(x.inside(tensor))


@rule("take_along_dim")
def take_along_dim(x: VmapLevel, tensor: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    if dim is None:
        flat = [F.reshape(x.front(t), (x.size, t.numel)) for t in (tensor, indices)]
        return x.call(*flat, 1)
    return x.call(x.front(tensor), x.front(indices), shifted(dim, tensor.ndim))
