"""Reductions, scans and sorting on mapped tensors, along the dimensions of a sample."""

from __future__ import annotations

from typing import Any, Final

from ..functional import F
from ..tensor import Tensor
from .level import RULES, Level, rule, sample_by_sample
from .views import shifted

_ALL_DIMS: Final = (
    "sum", "nansum", "mean", "nanmean", "var", "std", "var_mean", "std_mean", "norm", "count_nonzero", "all", "any",
    "logsumexp", "amax", "amin",
)  # fmt: skip
"""Reductions to which no dimension means every one."""
_FLATTENED: Final = ("prod", "argmax", "argmin", "aminmax")
"""Reductions along one dimension, to which none means the flattened tensor."""
_ALONG: Final = (
    "softmax", "log_softmax", "softmax_backward", "log_softmax_backward", "max_dim", "min_dim", "median_dim",
    "nanmedian_dim", "mode", "kthvalue", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sort", "argsort",
    "topk", "shift", "linear_recurrence", "gather", "scatter", "scatter_add", "scatter_reduce", "gather_backward",
)  # fmt: skip
"""Ops along one dimension, all of whose operands have as many."""


def _with_dim(x: Level, tensors: tuple[Any, ...], dim: Any) -> Any:
    """The op on lifted operands, with its dimension replaced."""
    values = list(tensors)
    values[x.entry.op.positions["dim"]] = dim
    return x.call(*values)


def over_all(x: Level, *values: Any) -> Any:
    tensor, dim = values[0], values[x.entry.op.positions["dim"]]
    lifted = tuple(x.front(v) for v in values)
    if tensor.ndim == 0 or (dim == () and x.entry.op.name in ("all", "any")):  # these reduce nothing then
        return _with_dim(x, (F.unsqueeze(lifted[0], -1), *lifted[1:]), (tensor.ndim + 1,))
    gone = tuple(range(1, tensor.ndim + 1)) if dim is None or dim == () else shifted(dim, tensor.ndim)
    return _with_dim(x, lifted, gone)


def over_flat(x: Level, *values: Any) -> Any:
    tensor, dim = values[0], values[x.entry.op.positions["dim"]]
    lifted = tuple(x.front(v) for v in values)
    if dim is None or tensor.ndim == 0:
        return _with_dim(x, (F.reshape(lifted[0], (x.size, tensor.numel)), *lifted[1:]), 1)
    return _with_dim(x, lifted, shifted(dim, tensor.ndim))


def along(x: Level, *values: Any) -> Any:
    lifted = list(values)
    dim = values[x.entry.op.positions["dim"]]
    ndim = 0
    for i in x.entry.tensor_at:
        value = values[i]
        if isinstance(value, Tensor):
            ndim = max(ndim, value.ndim)
    for i in x.entry.tensor_at:
        value = values[i]
        if isinstance(value, Tensor):
            full = x.front(value)
            while len(full.shape) < max(ndim, 1) + 1:  # a sample without dimensions has one of a single element
                full = F.unsqueeze(full, 1)
            lifted[i] = full
    at = x.entry.op.positions.get("size")
    if at is not None:
        lifted[at] = (x.size, *(lifted[at] or (1,)))
    return _with_dim(x, tuple(lifted), shifted(dim, max(ndim, 1)))


for _names, _rule in ((_ALL_DIMS, over_all), (_FLATTENED, over_flat), (_ALONG, along)):
    RULES.update(dict.fromkeys(_names, _rule))


@rule("max", "min")
def extreme(x: Level, tensor: Tensor) -> Any:
    inner = x.inside(tensor)
    dims = tuple(range(1, tensor.ndim + 1))
    if _wants_gradient(x, tensor) or not dims:
        return sample_by_sample(x, [tensor])
    return x.engine.call("amax" if x.entry.op.name == "max" else "amin", inner, dims)


def _wants_gradient(x: Level, tensor: Tensor) -> bool:
    """Whether the result will be differentiated: ties and NaN are shared out as no op along a dimension does."""
    return x.engine.grad_enabled and tensor.requires_grad


@rule("median", "nanmedian")
def median(x: Level, tensor: Tensor) -> Any:
    if _wants_gradient(x, tensor):
        return sample_by_sample(x, [tensor])
    flat = F.reshape(x.inside(tensor), (x.size, tensor.numel))
    return x.engine.call(f"{x.entry.op.name}_dim", flat, 1)[0]


@rule("quantile", "nanquantile")
def quantile(x: Level, tensor: Tensor, q: Any, dim: int | None, *options: Any) -> Any:
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
def msort(x: Level, tensor: Tensor) -> Any:
    return F.sort(x.inside(tensor), 1)[0] if tensor.ndim else F.clone(x.inside(tensor))


@rule("take_along_dim")
def take_along_dim(x: Level, tensor: Tensor, indices: Tensor, dim: int | None) -> Any:
    if dim is None:
        flat = [F.reshape(x.front(t), (x.size, t.numel)) for t in (tensor, indices)]
        return x.call(*flat, 1)
    return x.call(x.front(tensor), x.front(indices), shifted(dim, tensor.ndim))
