"""Operations of PyTorch's dispatcher, recorded as gradwire's.

An operation is looked for in this order: a kernel of this package, gradwire's function of the same name, PyTorch's
decomposition into others, gradwire's derivative of the function whose gradient it is, and the CPU of this machine, with
a warning. What has a counterpart with another form, which writes to its first argument or to ``out``, goes by that.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch

import gradwire as gw

from . import host
from .devices import place
from .dtypes import OURS
from .found import FOUND, keep
from .functions import adapted, named
from .generators import with_generator
from .memory import ours, plain, theirs, upload

Kernel = Callable[..., Any]

KERNELS: Final[dict[str, Kernel]] = {}
"""By the name of an operation, with or without its overload: what computes it from tensors of PyTorch."""
COMPUTED: Final[dict[str, Kernel]] = {}
"""By the name of an operation: what computes it from tensors of gradwire, and makes new ones."""


def kernel(*names: str) -> Callable[[Kernel], Kernel]:
    """Register a function that takes and returns tensors of PyTorch."""

    def register(function: Kernel) -> Kernel:
        KERNELS.update(dict.fromkeys(names, function))
        return function

    return register


def computes(*names: str) -> Callable[[Kernel], Kernel]:
    """Register a function that takes and returns tensors of gradwire; the results are new ones."""

    def register(function: Kernel) -> Kernel:
        COMPUTED.update(dict.fromkeys(names, function))
        return function

    return register


def run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute an operation on tensors of the device."""
    return (FOUND.get(id(op)) or found_for(op))(*args, **kwargs)


def found_for(op: Any) -> Kernel:
    """What computes an operation, from now on without a search."""
    found = with_generator(op, _find(op))
    keep(op, found)
    return found


def name_of(op: Any) -> str:
    """An operation's name, without its namespace and overload."""
    name: str = op._schema.name
    return name.removeprefix("aten::")


def _find(op: Any) -> Kernel:
    name, schema = name_of(op), op._schema
    for full in (f"{name}.{op._overloadname}", name):
        if full in KERNELS and not (full == name and schema.is_mutable and not name.endswith("_")):
            return KERNELS[full]
    if op.is_view:
        return host.refusing(op)
    outs = [a.name for a in schema.arguments if a.is_out]
    if outs:
        return _into(op, outs)
    if schema.is_mutable:
        return _in_place(op)
    function = function_of(op)
    if function is not None:
        return translated(function)
    decomposition = torch._decomp.decomposition_table.get(op)
    if decomposition is not None:
        return decomposition
    gradient = _gradient_of(op)
    return host.computed_on_the_host(op) if gradient is None else translated(gradient)


def function_of(op: Any) -> Kernel | None:
    """What computes an operation from tensors of gradwire, in its arguments' order; None if there is none."""
    name = name_of(op)
    own = COMPUTED.get(f"{name}.{op._overloadname}") or COMPUTED.get(name)
    if own is not None:
        return own
    function = named(name)
    return None if function is None else adapted(function, op)


def _gradient_of(op: Any) -> Kernel | None:
    """The gradient of an operation whose name this one has, before ``_backward``, by gradwire's own derivative of it:
    the operation is recorded again."""
    name = name_of(op)
    if not name.endswith("_backward"):
        return None
    wanted = [a.name for a in op._schema.arguments]
    for forward in (name.removesuffix("_backward"), name.removesuffix("_backward") + "_forward"):
        packet = getattr(torch.ops.aten, forward, None)
        for overload in [] if packet is None else packet.overloads():
            other = getattr(packet, overload)
            given = [a.name for a in other._schema.arguments]
            if other._schema.is_mutable or "self" not in given or not set(given) <= set(wanted):
                continue
            function = function_of(other)
            if function is not None:
                return _pulled_back(function, [wanted.index(one) for one in given], given.index("self"))
    return None


def _pulled_back(function: Kernel, places: list[int], by: int) -> Kernel:
    def gradient(*args: Any) -> Any:
        given = [args[i] for i in places if i < len(args)]
        return gradients_by(function, given, [by], args[0])[0]

    return gradient


def gradients_by(function: Kernel, args: list[Any], by: list[int], grad: Any) -> list[Any]:
    """The gradients of a function's first result by some of its arguments."""
    with gw.enable_grad():
        given = [value.detach().requires_grad_() if i in by else value for i, value in enumerate(args)]
        result = function(*given)
        first = result if isinstance(result, gw.Tensor) else result[0]
        return list(gw.autograd.grad(first, [given[i] for i in by], grad, allow_unused=True, materialize_grads=True))


# Arguments and results


def translated(function: Kernel) -> Kernel:
    """A function of gradwire's tensors, for PyTorch's."""

    placed = _takes_device(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        passed = all_given(args)
        if not kwargs:
            found = function(*passed)
        else:
            options = {k: given(v) for k, v in kwargs.items() if k not in _WITHOUT_EFFECT}
            if (device := options.pop("device", None)) is not None and placed:
                options["device"] = place(device)
            found = function(*passed, **options)
        if type(found) is not gw.Tensor:
            return returned(found)
        for one in passed:
            if one is found:
                return theirs(found.clone())  # PyTorch's operations return new memory
        return theirs(found)

    return call


_WITHOUT_EFFECT: Final = frozenset(("layout", "pin_memory", "non_blocking"))


def _takes_device(function: Kernel) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    return any(p.name == "device" or p.kind is p.VAR_KEYWORD for p in parameters)


MEMORY_FORMATS: Final = {
    torch.contiguous_format: gw.contiguous_format,
    torch.preserve_format: gw.preserve_format,
    torch.channels_last: gw.channels_last,
    torch.channels_last_3d: gw.channels_last_3d,
}


def given(value: Any) -> Any:
    """An argument of PyTorch's as gradwire's."""
    convert = _CONVERSIONS.get(type(value), _other)
    return value if convert is None else convert(value)


def all_given(values: Any) -> list[Any]:
    """Several arguments of PyTorch's as gradwire's."""
    return [v if (convert := _CONVERSIONS.get(type(v), _other)) is None else convert(v) for v in values]


def _tensor(value: torch.Tensor) -> gw.Tensor:
    return plain(value) if value.is_conj() else ours(value)  # a few operations get conjugated views


def _several(values: Any) -> Any:
    """Numbers as a tuple, by which gradwire knows a call again."""
    for one in values:
        if type(one) not in _NUMBERS:
            return [_in_list(one) for one in values]
    return tuple(values)


def _in_list(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":  # indices may be elsewhere
        return upload(value)
    return given(value)


def _other(value: Any) -> Any:
    """An argument of a class that is derived from one of those below."""
    for base, convert in _CONVERSIONS.items():
        if convert is not None and isinstance(value, base):
            return convert(value)
    return value


_NUMBERS: Final = frozenset((int, float, bool))
_CONVERSIONS: Final[dict[type, Callable[[Any], Any] | None]] = {
    **dict.fromkeys((int, float, bool, complex, str, type(None), torch.device, torch.layout)),
    torch.Tensor: _tensor, torch.nn.Parameter: _tensor, list: _several, tuple: _several,
    torch.dtype: OURS.__getitem__, torch.memory_format: MEMORY_FORMATS.__getitem__,
}  # fmt: skip
"""How an argument of a class becomes one of gradwire's; None where it is the same."""


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
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::").removesuffix("_"), None)
    if packet is None:
        return None
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
    """Give a tensor the values of another; one of another shape takes that."""
    if not torch.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
    if target.shape != result.shape:
        if target.numel():
            warnings.warn(
                f"out has the shape {tuple(target.shape)}, and takes that of the result, {tuple(result.shape)}: "
                "give it an empty tensor instead",
                UserWarning, stacklevel=2,
            )  # fmt: skip
        target.resize_(result.shape)
    ours(target).copy_(ours(result))


def _in_place(op: Any) -> Kernel:
    schema, name = op._schema, name_of(op)
    written = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
    if name.endswith("_") and written == [0]:
        method = getattr(gw.Tensor, name, None)
        method = None if method is None else adapted(method, op)
        if method is not None:
            return _method(method)
        functional = _functional(op)
        if functional is not None:
            return _rewriting(functional)
    decomposition = torch._decomp.decomposition_table.get(op)
    return decomposition or host.computed_on_the_host(op)


def _method(method: Kernel) -> Kernel:
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            method(*all_given(args), **{k: given(v) for k, v in kwargs.items()})
        else:
            method(*all_given(args))
        return args[0]

    return call


def _rewriting(functional: Any) -> Kernel:
    def call(*args: Any, **kwargs: Any) -> Any:
        target, result = args[0], run(functional, *args, **kwargs)
        if not torch.can_cast(result.dtype, target.dtype):
            raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
        ours(target).copy_(ours(result))
        return target

    return call
