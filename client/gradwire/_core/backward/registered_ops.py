"""Operations that a program registers (``torch.library``): Python functions with a name, a schema and a derivative."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from gradwire_protocol.errors import ArgumentError, GraphError

from ..context.modes import no_grad
from ..context.pytree import tree_flatten, tree_unflatten
from ..dispatch.autocasting import is_autocast_enabled
from ..tensor.tensor import Tensor
from .function import Function

REGISTERED: Final[dict[str, dict[str, RegisteredOp]]] = {}
"""By namespace and name."""

ALIASES: Final = {
    "CompositeExplicitAutograd": "default", "CompositeImplicitAutograd": "composed", "AutogradCPU": "autograd",
    "AutogradCUDA": "autograd", "": "default",
}  # fmt: skip
"""What kernels of a dispatch key of PyTorch's are kept under; others under the key in lower case (``cpu``)."""


class _Excluded(threading.local):
    """The kinds of kernels that are passed over just now in this thread: ``Autograd``, ``Autocast``."""

    kinds: tuple[str, ...] = ()


EXCLUDED: Final = _Excluded()


class Argument(NamedTuple):
    """One argument in a schema."""

    type: str
    name: str
    default: Any
    required: bool
    keyword_only: bool


class Schema:
    """The declaration of an operation: ``name(Tensor x, float y=1.0, *, bool z=False) -> Tensor``.

    Attributes:
        text: the declaration with the operation's full name.
        arguments: the arguments in order.
        returns: the types of what it returns, as text.
        mutates: the names of the arguments that it writes to.

    Raises:
        ArgumentError: for text that is no declaration.
    """

    def __init__(self, qualname: str, text: str) -> None:
        head, arrow, returns = text.strip().partition("->")
        opened, closed = head.find("("), head.rstrip().rfind(")")
        if not arrow or opened < 0 or closed < opened:
            raise ArgumentError(f"{text!r:.120} is no schema: it reads (Tensor x, float y=1.0) -> Tensor")
        self.text = f"{qualname}{head[opened:].strip()} -> {returns.strip()}"
        self.returns = returns.strip()
        self.arguments: list[Argument] = []
        keyword_only = False
        for part in _split(head[opened + 1 : closed]):
            if part == "*":
                keyword_only = True
                continue
            declared, given, default = part.partition("=")
            kind, _, name = declared.strip().rpartition(" ")
            if not kind:
                raise ArgumentError(f"{part!r:.60} in schema {text!r:.120} lacks a type or a name")
            self.arguments.append(Argument(kind, name, _default(default.strip()), not given, keyword_only))
        self.mutates = frozenset(a.name for a in self.arguments if "!" in a.type)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call by place, and those by keyword only, with defaults filled in.

        Raises:
            RuntimeError: when they do not fit.
        """
        name = self.text.partition("(")[0]
        positional = [a for a in self.arguments if not a.keyword_only]
        if len(args) > len(positional):
            raise RuntimeError(f"{name}() takes {len(positional)} positional arguments, not {len(args)}: {self.text}")
        given = dict(zip((a.name for a in positional), args, strict=False))
        for key, value in kwargs.items():
            if key in given or all(key != a.name for a in self.arguments):
                raise RuntimeError(f"{name}() got an unexpected or repeated argument {key!r}: {self.text}")
            given[key] = value
        for argument in self.arguments:
            if argument.name not in given:
                if argument.required:
                    raise RuntimeError(f"{name}() is missing its argument {argument.name!r}: {self.text}")
                given[argument.name] = argument.default
        return (
            tuple(given[a.name] for a in positional),
            {a.name: given[a.name] for a in self.arguments if a.keyword_only},
        )  # fmt: skip

    def without_defaults(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Bound arguments without those at the end that are as declared, which a kernel may leave out."""
        declared = [a for a in self.arguments if not a.keyword_only]
        count = len(args)
        while count and not declared[count - 1].required and _is_default(args[count - 1], declared[count - 1].default):
            count -= 1
        defaults = {a.name: a for a in self.arguments if a.keyword_only and not a.required}
        given = {
            name: value
            for name, value in kwargs.items()
            if name not in defaults or not _is_default(value, defaults[name].default)
        }
        return args[:count], given

    def __str__(self) -> str:
        return self.text


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not isinstance(value, Tensor) and value == default)


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth, last = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append(text[last:at].strip())
            last = at + 1
    parts.append(text[last:].strip())
    return [part for part in parts if part]


def _default(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text  # a dtype or a layout by its name


class RegisteredOp:
    """An operation that a program registered, as ``torch.ops.namespace.name`` gives it.

    A call finds the kernel of its tensors' device and records one node of the graph for it. Nothing of it reaches the
    server but what the kernel records.
    """

    def __init__(self, namespace: str, name: str, schema: Schema | None) -> None:
        self.namespace = namespace
        self.__name__ = self._opname = name
        self.__qualname__ = self.qualname = f"{namespace}::{name}"
        self.__module__ = f"torch.ops.{namespace}"
        self.schema = schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.disabled: set[str] = set()
        self._function: type[Function] | None = None

    @property
    def exists(self) -> bool:
        """Whether it is more than a kernel for the meta device that waits for its operation."""
        return self.schema is not None or bool(self.kernels.keys() - {"meta"})

    @property
    def default(self) -> RegisteredOp:
        """Its only overload: itself."""
        return self

    @property
    def _schema(self) -> Schema | None:
        return self.schema

    def overloads(self) -> list[str]:
        """The names of its overloads."""
        return ["default"]

    def name(self) -> str:
        """Its full name."""
        return self.qualname

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether a kernel is registered for a dispatch key of PyTorch's."""
        return kernel_key(str(getattr(key, "name", key))) in self.kernels

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.__name__.partition('.')[0]}', overload='default')>"

    def register(self, key: str, kernel: Callable[..., Any], replace: bool = False) -> None:
        """Add a kernel.

        Raises:
            GraphError: when there is one for this key.
        """
        if key in self.kernels and not replace:
            raise GraphError(f"{self.qualname} has a kernel for {key} already")
        self.kernels[key] = kernel

    def register_backward(self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> None:
        """Set the derivative."""
        self.backward, self.setup_context = backward, setup_context

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.schema is not None:
            args, kwargs = self.schema.bind(args, kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        kinds = {leaf.device.type for leaf in leaves if isinstance(leaf, Tensor)}
        kind = next((one for one in ("meta", "cuda") if one in kinds), "cpu")
        casting = self.kernels.get(f"autocast{kind}")
        if casting is not None and "Autocast" not in EXCLUDED.kinds and is_autocast_enabled(kind):
            return self._invoke(casting, args, kwargs)
        if "autograd" in self.kernels and "Autograd" not in EXCLUDED.kinds:
            return self._invoke(self.kernels["autograd"], args, kwargs)
        kernel = self._kernel(kind)
        if kernel is self.kernels.get("composed"):
            return self._invoke(kernel, args, kwargs)
        if "Autograd" in EXCLUDED.kinds:
            with no_grad():
                return self._invoke(kernel, args, kwargs)
        if self._function is None:
            self._function = _function_of(self)
        single: list[bool] = []
        found = self._function.apply(_Call(kernel, spec, single), *leaves)
        return list(found) if single and single[0] else found

    def _invoke(self, kernel: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.schema is not None:
            args, kwargs = self.schema.without_defaults(args, kwargs)
        return kernel(*args, **kwargs)

    def _kernel(self, kind: str) -> Callable[..., Any]:
        candidates = (kind, "composed") if kind == "meta" else (kind, "default", "composed")
        for key in candidates:
            if key in self.kernels and not (key in self.disabled and "default" in self.kernels):
                return self.kernels[key]
        why = "register_fake registers one" if kind == "meta" else "register_kernel or impl registers one"
        raise NotImplementedError(f"{self.qualname} has no kernel for tensors on device {kind}: {why}")


class _Call:
    """What a node needs to know of the call that it is of; a leaf among the arguments.

    Attributes:
        kernel: what computes.
        spec: the structure of the arguments.
        listed: gets whether the result is a list.
    """

    __slots__ = ("kernel", "listed", "spec")

    def __init__(self, kernel: Callable[..., Any], spec: Any, listed: list[bool]) -> None:
        self.kernel, self.spec, self.listed = kernel, spec, listed


def _function_of(op: RegisteredOp) -> type[Function]:
    """The custom Function that records calls of an operation: its arguments are the leaves of the operation's."""

    def forward(call: _Call, *leaves: Any) -> Any:
        args, kwargs = tree_unflatten(leaves, call.spec)
        with excluding("Autograd"):
            found = op._invoke(call.kernel, args, kwargs)
        call.listed.append(isinstance(found, list))
        return tuple(found) if isinstance(found, list) else found

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        call, *leaves = inputs
        ctx._call = call
        if op.setup_context is not None:
            args, kwargs = tree_unflatten(leaves, call.spec)
            output = list(output) if call.listed and call.listed[-1] else output
            if kwargs:
                op.setup_context(ctx=ctx, inputs=args, keyword_only_inputs=kwargs, output=output)
            else:
                op.setup_context(ctx=ctx, inputs=args, output=output)

    def backward(ctx: Any, *grads: Any) -> Any:
        call = ctx._call
        if op.backward is None:
            raise RuntimeError(
                f"Trying to backward through {op.qualname} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        given = op.backward(ctx, list(grads)) if call.listed[-1] else op.backward(ctx, *grads)
        given = given if isinstance(given, tuple) else (given,)
        args, kwargs = tree_unflatten(range(call.spec.num_leaves), call.spec)
        if len(given) != len(args):
            raise RuntimeError(
                f"{op.qualname}: backward returned {len(given)} gradients, and the operation has {len(args)} arguments"
            )
        made: list[Any] = [None] * call.spec.num_leaves
        for places, grad in zip(args, given, strict=True):
            at = tree_flatten(places)[0]
            parts = list(grad) if isinstance(places, (list, tuple)) and grad is not None else [grad] * len(at)
            for place, part in zip(at, parts, strict=True):
                made[place] = part
        return (None, *made)

    def vmap(info: Any, in_dims: tuple[Any, ...], call: _Call, *leaves: Any) -> Any:
        args, kwargs = tree_unflatten(leaves, call.spec)
        dims, _ = tree_unflatten(list(in_dims[1:]), call.spec)
        assert op.vmap is not None
        return op.vmap(info, dims, *args, **kwargs)

    members: dict[str, Any] = {
        "forward": staticmethod(forward), "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward), "generate_vmap_rule": op.vmap is None,
    }  # fmt: skip
    if op.vmap is not None:
        members["vmap"] = staticmethod(vmap)
    return type(f"{op.namespace}_{op.__name__}", (Function,), members)


class excluding:
    """``with`` in which kernels of some kinds are passed over."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        self._before = EXCLUDED.kinds
        EXCLUDED.kinds = (*self._before, *self._kinds)

    def __exit__(self, *error: object) -> None:
        EXCLUDED.kinds = self._before


def kernel_key(key: str) -> str:
    """What kernels of a dispatch key of PyTorch's, or of a device, are kept under."""
    return ALIASES.get(key, key.lower())


def registered(qualname: str, of: str = "torch.library") -> RegisteredOp:
    """An operation by its full name.

    Raises:
        ArgumentError: when there is none.
    """
    namespace, name = qualified(qualname)
    found = REGISTERED.get(namespace, {}).get(name)
    if found is None or not found.exists:
        raise ArgumentError(f"{of}: there is no operation {qualname}: define or custom_op makes one")
    return found


def qualified(qualname: str) -> tuple[str, str]:
    """Namespace and name of ``namespace::name``; the overload ``default`` may be named.

    Raises:
        ArgumentError: for another form.
    """
    namespace, separator, name = qualname.partition("::")
    if not separator or not namespace or not name or "::" in name:
        raise ArgumentError(f"{qualname!r:.80} is no name of an operation: it reads namespace::name")
    return namespace, name.removesuffix(".default")


def register_op(qualname: str, schema: str | None) -> RegisteredOp:
    """Add an operation. One that has only kernels so far gets its schema.

    Raises:
        GraphError: when it is defined already.
    """
    namespace, name = qualified(qualname)
    ops = REGISTERED.setdefault(namespace, {})
    found = ops.get(name)
    if found is None:
        found = ops[name] = RegisteredOp(namespace, name, None)
    elif schema is not None and found.schema is not None:
        raise GraphError(f"torch.library: operation {qualname} is defined already")
    if schema is not None:
        found.schema = Schema(found.qualname, schema)
    return found
