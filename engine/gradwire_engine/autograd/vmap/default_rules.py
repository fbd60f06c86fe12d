"""Rules that follow from facts of the op table: an op that declares one of these needs no rule of its own."""

from __future__ import annotations

from functools import cache
from typing import Any

from gradwire_protocol.table import Op

from ..functional import F
from ..tensor import Tensor
from .level import RULES, Rule, VmapLevel
from .views import shifted


@cache
def rule_of(op: Op) -> Rule | None:
    """The rule that is registered for an op, or else the one for what it declares."""
    found = RULES.get(op.name)
    if found is not None:
        return found
    if op.elementwise:
        return elementwise
    if op.batched:
        return in_front
    if not op.along:
        return None
    dim = op.params[op.positions["dim"]]
    if not dim.optional:
        return along
    return over_flat if dim.check == (int,) else over_all


def elementwise(x: VmapLevel, *values: Any) -> Any:
    """The op on all samples, operands cast first where the ranks that decide on promotion are the samples'."""
    op, compute = x.entry.op, x.inferred.compute
    tensors = [values[i] for i in x.entry.tensor_at if isinstance(values[i], Tensor)]
    rank = max(t.ndim for t in tensors)
    mixed = compute is not None and len({t.dtype for t in tensors}) > 1
    arguments = list(values)
    for i in x.entry.tensor_at:
        value = arguments[i]
        if isinstance(value, Tensor):
            if mixed and value.dtype is not compute and not (op.mutates is not None and i == 0):
                value = F.to(value, dtype=compute)
            arguments[i] = x.aligned(value, rank)
    last = op.positions.get("channels_last")
    if last is not None:
        arguments[last] = False  # an order of each sample's dimensions, which are not those of the batch
    return x.call(*arguments)


def in_front(x: VmapLevel, *values: Any) -> Any:
    """The op on a batch: the samples are its first dimension."""
    return x.call(*[x.front(v) for v in values])


# Along a dimension


def _with_dim(x: VmapLevel, tensors: tuple[Any, ...], dim: Any) -> Any:
    """The op on lifted operands, with its dimension replaced."""
    values = list(tensors)
    values[x.entry.op.positions["dim"]] = dim
    return x.call(*values)


def over_all(x: VmapLevel, *values: Any) -> Any:
    tensor, dim = values[0], values[x.entry.op.positions["dim"]]
    lifted = tuple(x.front(v) for v in values)
    if tensor.ndim == 0 or (dim == () and x.inferred.outs[0].shape == tensor.shape):
        return _with_dim(x, (F.unsqueeze(lifted[0], -1), *lifted[1:]), (tensor.ndim + 1,))
    gone = tuple(range(1, tensor.ndim + 1)) if dim is None or dim == () else shifted(dim, tensor.ndim)
    return _with_dim(x, lifted, gone)


def over_flat(x: VmapLevel, *values: Any) -> Any:
    tensor, dim = values[0], values[x.entry.op.positions["dim"]]
    lifted = tuple(x.front(v) for v in values)
    if dim is None or tensor.ndim == 0:
        return _with_dim(x, (F.reshape(lifted[0], (x.size, tensor.numel)), *lifted[1:]), 1)
    return _with_dim(x, lifted, shifted(dim, tensor.ndim))


def along(x: VmapLevel, *values: Any) -> Any:
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
