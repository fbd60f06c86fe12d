"""Operations of PyTorch's dispatcher, recorded as gradwire's.

An operation is looked for in this order: a kernel of :mod:`gradwire_torch.kernels`, gradwire's function of the same
name, PyTorch's decomposition into others, and the CPU of this machine, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

import gradwire as gw

from . import host
from .dtypes import OURS
from .functions import function_of
from .memory import ours, theirs, upload

Kernel = Callable[..., Any]

KERNELS: Final[dict[str, Kernel]] = {}
"""By the name of an operation, with or without its overload: what computes it from tensors of PyTorch."""
_FOUND: Final[dict[Any, Kernel]] = {}


def kernel(*names: str) -> Callable[[Kernel], Kernel]:
    """Register a function that takes and returns tensors of PyTorch."""

    def register(function: Kernel) -> Kernel:
        KERNELS.update(dict.fromkeys(names, function))
        return function

    return register


def computes(*names: str) -> Callable[[Kernel], Kernel]:
    """Register a function that takes and returns tensors of gradwire; the results are new ones."""

    def register(function: Kernel) -> Kernel:
        KERNELS.update(dict.fromkeys(names, translated(function)))
        return function

    return register


def run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute an operation on tensors of the device."""
    found = _FOUND.get(op)
    if found is None:
        found = _FOUND[op] = _find(op)
    return found(*args, **kwargs)


def _find(op: Any) -> Kernel:
    full = op._schema.name.removeprefix("aten::")
    overload = op._overloadname
    for name in (f"{full}.{overload}", full):
        if name in KERNELS:
            return KERNELS[name]
    if op.is_view:
        return host.refusing(op)
    schema = op._schema
    outs = [a.name for a in schema.arguments if a.is_out]
    if outs:
        return _into(op, outs)
    if op._schema.is_mutable:
        return _in_place(op)
    function = function_of(full, op)
    if function is not None:
        return translated(function)
    decomposition = torch._decomp.decomposition_table.get(op)
    if decomposition is not None:
        return decomposition
    return host.computed_on_the_host(op)


# Arguments and results


def translated(function: Kernel) -> Kernel:
    """A function of gradwire's tensors, for PyTorch's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for name in ("device", "layout", "pin_memory", "non_blocking"):
            kwargs.pop(name, None)
        return returned(function(*[given(a) for a in args], **{k: given(v) for k, v in kwargs.items()}))

    return call


def given(value: Any) -> Any:
    """An argument of PyTorch's as gradwire's."""
    if isinstance(value, torch.Tensor):
        return ours(value)
    if isinstance(value, (list, tuple)):
        return [_in_list(one) for one in value]
    if isinstance(value, torch.dtype):
        return OURS[value]
    if isinstance(value, torch.memory_format):
        return MEMORY_FORMATS[value]
    if isinstance(value, torch.Generator):
        return host.generator(value)
    return value


def _in_list(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":  # indices may be elsewhere
        return upload(value)
    return given(value)


MEMORY_FORMATS: Final = {
    torch.contiguous_format: gw.contiguous_format,
    torch.preserve_format: gw.preserve_format,
    torch.channels_last: gw.channels_last,
    torch.channels_last_3d: gw.channels_last_3d,
}


def returned(value: Any) -> Any:
    """A result of gradwire's as PyTorch's: tensors are new ones."""
    if isinstance(value, gw.Tensor):
        return theirs(value)
    if isinstance(value, (list, tuple)):
        return tuple(returned(one) for one in value)
    return value


# Forms of an operation


def _functional(op: Any) -> Any:
    """The overload that returns what this one writes: by the name without ``_`` or ``out``, and the same arguments."""
    schema = op._schema
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::").removesuffix("_"))
    wanted = [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]
    for overload in packet.overloads():
        other = getattr(packet, overload)._schema
        if not other.is_mutable and [(a.name, str(a.type)) for a in other.arguments] == wanted:
            return getattr(packet, overload)
    return None


def _into(op: Any, outs: list[str]) -> Kernel:
    functional = _functional(op)
    if functional is None:
        return host.computed_on_the_host(op)

    def call(*args: Any, **kwargs: Any) -> Any:
        targets = [kwargs.pop(name) for name in outs]
        results = run(functional, *args, **kwargs)
        for target, result in zip(targets, results if isinstance(results, (list, tuple)) else [results], strict=True):
            write(target, result)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return call


def write(target: torch.Tensor, result: torch.Tensor) -> None:
    """Give a tensor the values of another; an empty one takes its shape and its memory, too."""
    if target.shape == result.shape:
        ours(target).copy_(ours(result))
    else:
        if target.numel():
            raise RuntimeError(f"out has the shape {tuple(target.shape)}, and the result {tuple(result.shape)}")
        target.data = result.to(target.dtype)


def _in_place(op: Any) -> Kernel:
    schema = op._schema
    name = schema.name.removeprefix("aten::")
    written = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
    method = getattr(gw.Tensor, name, None) if name.endswith("_") and written == [0] else None
    if method is not None:
        return _method(method)
    functional = _functional(op)
    if functional is not None and written == [0]:

        def call(*args: Any, **kwargs: Any) -> Any:
            ours(args[0]).copy_(ours(run(functional, *args, **kwargs)))
            return args[0]

        return call
    decomposition = torch._decomp.decomposition_table.get(op)
    return decomposition or host.computed_on_the_host(op)


def _method(method: Kernel) -> Kernel:
    def call(*args: Any, **kwargs: Any) -> Any:
        method(*[given(a) for a in args], **{k: given(v) for k, v in kwargs.items()})
        return args[0]

    return call
