"""Elementwise ops on mapped tensors: samples of lower rank get ones, so that what broadcast before still does."""

from __future__ import annotations

from typing import Any, Final

import gradwire_protocol.ops  # noqa: F401  (families are read from the table)
from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.table import TABLE

from ..functional import F
from ..tensor import Tensor
from .level import RULES, Level, rule

_FAMILIES: Final = ("pointwise", "functions", "comparison")
_ACTIVATIONS: Final = (
    "relu", "relu6", "hardtanh", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "logsigmoid",
    "softsign", "tanhshrink", "hardshrink", "softshrink", "hardsigmoid", "hardswish", "threshold",
    "threshold_backward", "sigmoid_backward", "tanh_backward", "gelu_backward", "silu_backward",
)  # fmt: skip
_UNARY: Final = ("clone", "to", "alias", "detach", "zeros_like", "ones_like", "empty_like", "full_like", "zero_")
ELEMENTWISE_RANDOM: Final = frozenset({
    "dropout", "rand_like", "randn_like", "randint_like", "bernoulli", "uniform_", "normal_", "exponential_",
    "bernoulli_", "random_", "geometric_", "log_normal_", "cauchy_", "standard_gamma", "poisson", "binomial",
    "sample_von_mises", "normal",
})  # fmt: skip


def elementwise(x: Level, *values: Any) -> Any:
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
    return x.call(*arguments)


def _register() -> None:
    names = [name for name, op in TABLE.items() if op.family in _FAMILIES]
    for name in _ACTIVATIONS:
        names += [n for n in (name, f"{name}_") if n in TABLE]
    for name in (*names, *_UNARY, *ELEMENTWISE_RANDOM):
        RULES.setdefault(name, elementwise)


@rule("where")
def where(x: Level, condition: Tensor, first: Any, second: Any) -> Any:
    dtype = x.inferred.outs[0].dtype
    tensors = [v for v in (condition, first, second) if isinstance(v, Tensor)]
    rank = max(t.ndim for t in tensors)
    sides = [F.to(v, dtype=dtype) if isinstance(v, Tensor) and v.dtype is not dtype else v for v in (first, second)]
    if not any(isinstance(v, Tensor) for v in sides):
        return F.to(x.call(x.aligned(condition, rank), *sides), dtype=dtype)
    return x.call(*[x.aligned(v, rank) for v in (condition, *sides)])


@rule("masked_fill")
def masked_fill(x: Level, tensor: Tensor, mask: Tensor, value: Any) -> Any:
    rank = max(tensor.ndim, mask.ndim)
    if not x.has(value):
        # Where the mask alone is mapped, the result has more elements than self.
        source = tensor if x.has(tensor) else x.wrap(x.front(tensor), tensor.meta)
        return x.call(x.aligned(source, rank), x.aligned(mask, rank), value)
    filled = F.where(mask, F.to(value, dtype=tensor.dtype), tensor)
    return filled


@rule("masked_fill_")
def masked_fill_(x: Level, tensor: Tensor, mask: Tensor, value: Any) -> None:
    if x.has(value):
        F.copy_(x.inside(tensor), x.front(F.where(mask, F.to(value, dtype=tensor.dtype), tensor)))
    else:
        x.call(x.inside(tensor), x.aligned(mask, tensor.ndim), value)


@rule("copy_")
def copy_(x: Level, target: Tensor, source: Tensor, *options: Any) -> None:
    x.call(x.inside(target), x.aligned(source, target.ndim), *options)


@rule("fill_")
def fill_(x: Level, target: Tensor, value: Any) -> None:
    if x.has(value):
        F.copy_(x.inside(target), x.aligned(value, target.ndim))
    else:
        x.call(x.inside(target), value)


@rule("contiguous")
def contiguous(x: Level, tensor: Tensor) -> Any:
    return F.contiguous(x.inside(tensor))


@rule("prelu")
def prelu(x: Level, tensor: Tensor, weight: Tensor) -> Any:
    if tensor.ndim >= 2 and weight.numel != 1:
        weight = F.reshape(weight, (-1, *(1,) * (tensor.ndim - 2)))
    elif weight.numel == 1:
        weight = F.reshape(weight, ())
    return F.where(F.gt(tensor, 0), tensor, weight * tensor)


@rule("one_hot")
def one_hot(x: Level, tensor: Tensor, num_classes: int) -> Any:
    if num_classes < 0:
        raise ArgumentError("one_hot: inside vmap num_classes must be given, since it cannot depend on the samples")
    return x.call(x.inside(tensor), num_classes)


@rule("normal")
def normal(x: Level, mean: Any, std: Any, *options: Any) -> Any:
    rank = max(v.ndim for v in (mean, std) if isinstance(v, Tensor))
    return x.call(x.aligned(mean, rank), x.aligned(std, rank), *options)


@rule("bucketize")
def bucketize(x: Level, tensor: Any, boundaries: Tensor, *options: Any) -> Any:
    if x.has(boundaries):
        return F.searchsorted(boundaries, tensor, *options)
    return x.call(x.inside(tensor), boundaries, *options)


@rule("searchsorted")
def searchsorted(x: Level, ordered: Tensor, wanted: Any, *options: Any) -> Any:
    if ordered.ndim > 1:
        return x.call(x.front(ordered), x.front(wanted), *options)
    if not x.has(ordered):
        return x.call(ordered, x.inside(wanted), *options)
    if not isinstance(wanted, Tensor):
        wanted = x.engine.call("full", (), wanted, dtype=ordered.dtype, device=ordered.device)
    return x.call(x.inside(ordered), F.reshape(x.front(wanted), (x.size, wanted.numel)), *options)


_register()
