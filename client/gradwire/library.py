"""``torch.library``: operations of a program's own, as ``torch.ops.namespace.name``.

Their kernels are Python functions that run in the client, as any function of tensors does; an operation has a schema,
one node in the graph, and the derivative that ``register_autograd`` gives it.
"""

from __future__ import annotations

import inspect
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Union, get_args, get_origin

from gradwire_protocol.dtypes import DType, float64
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ._core.backward.registered_ops import (
    REGISTERED,
    RegisteredOp,
    excluding,
    kernel_key,
    qualified,
    register_op,
    registered,
)
from ._core.context.pytree import tree_map
from ._core.context.size import device as Device
from ._core.surface import stand_ins
from ._core.tensor.tensor import Tensor

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "impl", "impl_abstract",
           "infer_schema", "register_autocast", "register_autograd", "register_fake", "register_kernel",
           "register_vmap"]  # fmt: skip

_RESERVED: Final = frozenset({"prim"})


def _name_of(op: Any) -> str:
    """The full name of an operation that is given as itself or by its name."""
    if isinstance(op, CustomOpDef):
        return op._qualname
    if isinstance(op, RegisteredOp):
        return op.qualname
    if isinstance(op, str):
        return op
    raise ArgumentValueError(f"torch.library takes an operation or its name, not {type(op).__name__} {op!r:.60}")


class Library:
    """Operations of one namespace that are registered together, and removed when the library is.

    Args:
        ns: the namespace.
        kind: ``"DEF"`` defines the namespace, ``"FRAGMENT"`` adds to it, ``"IMPL"`` adds kernels only.
        dispatch_key: the dispatch key of its kernels, for ``impl`` without one.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ArgumentValueError(f"Unsupported library type: {kind!r:.60}; it is IMPL, DEF or FRAGMENT")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ArgumentValueError(f"{ns} is a reserved namespace of PyTorch's")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: set[str] = set()
        self._kernels: set[tuple[str, str]] = set()

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare an operation, as ``"name(Tensor x, int n=1) -> Tensor"``. Returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis!r:.60}")
        name = schema.partition("(")[0].strip()
        register_op(f"{self.ns}::{name}", schema)
        self._defined.add(name.removesuffix(".default"))
        return name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Add a kernel to an operation: for a device (``"CPU"``), for all (``"CompositeExplicitAutograd"``, or none).

        A kernel of ``CompositeImplicitAutograd`` is differentiated through; one of ``Autograd`` or ``Autocast`` is
        called before the others.
        """
        if with_keyset:
            raise ArgumentError("Library.impl: gradwire has no dispatch keys to hand to a kernel (with_keyset)")
        if fn is fallthrough_kernel:
            return
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn).__name__}")
        name = op_name if isinstance(op_name, str) else _name_of(op_name)
        name = name if "::" in name else f"{self.ns}::{name}"
        if qualified(name)[0] != self.ns:
            raise ArgumentError(f"Library.impl: {name} is not in the library's namespace {self.ns}")
        key = kernel_key(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        op = register_op(name, None)
        op.register(key, fn, replace=allow_override)
        self._kernels.add((op.__name__, key))

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Refused: gradwire's own operations have no dispatch keys.

        Raises:
            ArgumentError: always, but for a fallthrough.
        """
        if fn is not fallthrough_kernel:
            raise ArgumentError("Library.fallback is not supported by gradwire: its operations have no dispatch keys")

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, **_: Any) -> None:
        name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        registered(name, "register_fake").register("meta", fn, replace=True)

    def _destroy(self) -> None:
        """Remove what it registered."""
        ops = REGISTERED.get(self.ns, {})
        for name, key in self._kernels:
            if name in ops:
                ops[name].kernels.pop(key, None)
        for name in self._defined:
            ops.pop(name, None)
        self._defined.clear()
        self._kernels.clear()


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def fallthrough_kernel() -> None:
    """Stands for no kernel in ``Library.impl``.

    Raises:
        NotImplementedError: when it is called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Declare an operation.

    Args:
        qualname: ``namespace::name``.
        schema: its arguments and results, as ``"(Tensor x) -> Tensor"``.
        lib: the library that it belongs to.
        tags: as in PyTorch; without effect.
    """
    if not isinstance(qualname, str):
        raise ArgumentValueError(f"define(qualname): expected qualname to be a str, got {type(qualname).__name__}")
    _, name = qualified(qualname)
    if lib is None:
        register_op(qualname, schema)
    else:
        lib.define(name + schema)


def impl(qualname: str, types: str | Sequence[str], func: Any = None, *, lib: Library | None = None) -> Any:
    """Add a kernel to an operation, also as a decorator.

    Args:
        qualname: ``namespace::name``.
        types: the devices that it is for, or ``"default"`` for all.
        func: the kernel.
        lib: the library that it belongs to.
    """
    return register_kernel(qualname, None if types == "default" else types, func, lib=lib)


def register_kernel(op: Any, device_types: Any = None, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Add a kernel for tensors of some devices to an operation, also as a decorator.

    Args:
        op: the operation, or its name.
        device_types: a device type, several, or ``None`` for all.
        func: the kernel.
        lib: the library that it belongs to.
    """
    if func is None:
        return lambda function: _added(op, device_types, function)
    _added(op, device_types, func)
    return None


def _added(op: Any, device_types: Any, func: Any) -> Any:
    found = registered(_name_of(op), "register_kernel")
    for kind in ["default"] if device_types is None else [device_types] if isinstance(device_types, str) else (
        device_types
    ):  # fmt: skip
        found.register(kernel_key(kind), func, replace=True)
    return func


def register_fake(
    op: Any, func: Any = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """Add the kernel for tensors of the meta device to an operation, also as a decorator. It infers the results.

    The operation need not exist: torchvision registers such kernels for operations of its compiled library.
    """
    if func is None:
        return lambda function: register_fake(op, function)
    register_op(_name_of(op), None).register("meta", func, replace=True)
    return func


def impl_abstract(qualname: Any, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """:func:`register_fake` under its older name."""
    warnings.warn("torch.library.impl_abstract is now torch.library.register_fake", FutureWarning, stacklevel=2)
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:  # fmt: skip
    """Give an operation its derivative.

    Args:
        op: the operation, or its name.
        backward: ``backward(ctx, *grads)`` returns one gradient per argument; that of a list of tensors is a list.
        setup_context: ``setup_context(ctx, inputs, output)`` saves what backward needs; if the operation has arguments
            that are given by keyword only, they come as ``keyword_only_inputs``.
        lib: the library that it belongs to.
    """
    registered(_name_of(op), "register_autograd").register_backward(backward, setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Tell ``vmap`` how to compute an operation for all samples, also as a decorator.

    ``func(info, in_dims, *args)`` returns the results and their ``out_dims``. Without one, the kernel is mapped.
    """
    if func is None:
        return lambda function: register_vmap(op, function)
    found = registered(_name_of(op), "register_vmap")
    found.vmap, found._function = func, None
    return func


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Cast an operation's floating-point arguments inside of autocast.

    Args:
        op: the operation, or its name.
        device_type: ``"cpu"`` or ``"cuda"``.
        cast_inputs: the dtype.
        lib: the library that it belongs to.
    """
    if device_type not in ("cpu", "cuda"):
        raise ArgumentValueError(f"Unknown device type: {device_type!r:.60}; autocast is for cpu and cuda")
    found = registered(_name_of(op), "register_autocast")
    key = kernel_key(f"Autocast{device_type.upper()}")

    def cast(value: Any) -> Any:
        fits = isinstance(value, Tensor) and value.is_floating_point() and value.device.type == device_type
        return value.to(cast_inputs) if fits and value.dtype is not float64 else value

    def kernel(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(cast, (args, kwargs))
        with excluding("Autocast"):
            return found(*args, **kwargs)

    found.register(key, kernel, replace=True)


class CustomOpDef:
    """An operation that :func:`custom_op` made of a function: calls it, and registers more of it."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any]) -> None:
        self._namespace, self._name, self._qualname = namespace, name, f"{namespace}::{name}"
        REGISTERED.get(namespace, {}).pop(name, None)  # a program that runs twice in one notebook defines it again
        self._opoverload = register_op(self._qualname, schema)
        self._init_fn = fn
        self.__name__, self.__doc__, self.__module__ = fn.__name__, fn.__doc__, fn.__module__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """See :func:`register_kernel`."""
        return register_kernel(self, device_types, fn) if fn is not None else register_kernel(self, device_types)

    def register_fake(self, fn: Any, /) -> Any:
        """See :func:`register_fake`."""
        return register_fake(self, fn)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """See :func:`register_autograd`."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """See :func:`register_vmap`."""
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """See :func:`register_autocast`."""
        register_autocast(self, device_type, cast_inputs)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """``with`` in which the kernel for a device is passed over in favour of the one for all, or not."""
        before = set(self._opoverload.disabled)
        (self._opoverload.disabled.discard if enabled else self._opoverload.disabled.add)(kernel_key(device_type))
        try:
            yield
        finally:
            self._opoverload.disabled = before


def custom_op(
    name: str, fn: Any = None, /, *, mutates_args: str | Iterable[str], device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """An operation that a function computes, also as a decorator.

    Args:
        name: ``namespace::name``.
        fn: the function, with annotations, from which the schema follows.
        mutates_args: the names of the arguments that it writes to, or ``"unknown"``.
        device_types: the devices whose tensors it is for; ``None`` for all.
        schema: the schema, instead of the annotations.
        tags: as in PyTorch; without effect.
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        declared = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, own = qualified(name)
        made = CustomOpDef(namespace, own, declared, function)
        _added(made, device_types, function)
        return made

    return make if fn is None else make(fn)


_TYPES: Final[dict[Any, str]] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", Device: "Device", DType: "ScalarType",
    complex: "complex",
}  # fmt: skip


def _schema_type(annotation: Any) -> str:
    if annotation in _TYPES:
        return _TYPES[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        rest = [one for one in inner if one is not type(None)]
        if len(rest) == 1:
            return _schema_type(rest[0]) + "?"
        if set(rest) in ({int, float}, {int, float, bool}, {int, float, bool, complex}):
            return "Scalar" + "?" * (len(rest) < len(inner))
    if origin in (list, Sequence) and len(inner) == 1:
        return _schema_type(inner[0]) + "[]"
    raise ArgumentValueError(f"infer_schema(func): type {annotation!r:.80} is none that an operation can have")


def infer_schema(prototype_function: Any, /, *, mutates_args: Any, op_name: str | None = None, tags: Any = ()) -> str:
    """The schema of a function, from its annotations.

    Args:
        prototype_function: the function.
        mutates_args: the names of the arguments that it writes to, or ``"unknown"``.
        op_name: a name that the schema begins with.
        tags: accepted without effect: they are hints for PyTorch's compiler, and no part of the schema.

    Raises:
        ArgumentValueError: when an annotation is missing, or is of no type that an operation can have.
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    mutated = set() if mutates_args == "unknown" else set(mutates_args)
    parts: list[str] = []
    star = False
    for at, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ArgumentValueError("infer_schema(func): Arguments must be positional or keyword arguments")
        if name not in hints:
            raise ArgumentValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _schema_type(hints[name])
        if mutates_args == "unknown" or name in mutated:
            mutated.discard(name)
            if kind.startswith("Tensor"):
                kind = kind.replace("Tensor", f"Tensor(a{at}!)", 1)
            elif mutates_args != "unknown":
                raise ArgumentValueError(f"infer_schema(func): Parameter {name} is in mutates_args, and no tensor")
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        if parameter.default is parameter.empty:
            parts.append(f"{kind} {name}")
        else:
            value = parameter.default
            shown = f'"{value}"' if isinstance(value, (str, Device)) else str(value).removeprefix("torch.")
            parts.append(f"{kind} {name}={shown}")
    if mutated:
        raise ArgumentValueError(f"infer_schema(func): mutates_args has {sorted(mutated)}, which are no arguments")
    if "return" not in hints:
        raise ArgumentValueError("infer_schema(func): The return type has no annotation")
    returned = hints["return"]
    if returned is type(None):
        shown = "()"
    elif get_origin(returned) is tuple:
        shown = "(" + ", ".join(_schema_type(one) for one in get_args(returned)) + ")"
    else:
        shown = _schema_type(returned)
    return f"{op_name or ''}({', '.join(parts)}) -> {shown}"


stand_ins.fill(
    __name__,
    ("get_ctx", "get_kernel", "opcheck", "register_torch_dispatch", "triton_op", "wrap_triton"),
    "operations of a program are Python functions of tensors",
)
