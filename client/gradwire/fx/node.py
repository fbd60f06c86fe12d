"""``Node``: one step of a graph, and its arguments."""

from __future__ import annotations

import builtins
import operator
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Optional, Union

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from .._core.context.layouts import layout, memory_format
from .._core.context.size import device
from .._core.tensor.tensor import Tensor
from . import _names
from ._names import Target, qualified, shown_type
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

BaseArgumentTypes = Union[str, int, float, bool, complex, DType, Tensor, device, memory_format, layout]  # noqa: UP007
base_types: Final = typing.get_args(BaseArgumentTypes)
"""Types of constants that arguments may have."""

Argument = Optional[  # noqa: UP045
    Union[
        "tuple[Argument, ...]", Sequence["Argument"], Mapping[str, "Argument"], slice, range, "Node", BaseArgumentTypes
    ]
]  # fmt: skip

OPS: Final = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

_get_qualified_name = qualified
_type_repr = shown_type
_side_effectful_functions: Final[set[Any]] = {operator.setitem}


def has_side_effect(fn: Any) -> Any:
    """Keep calls of a function when dead code is removed."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """The same structure of tuples, lists, dicts and slices, with ``fn`` of each leaf."""
    if isinstance(a, tuple):
        made = [map_aggregate(item, fn) for item in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(item, fn)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """The same structure with ``fn`` of each node in it.

    Raises:
        ArgumentTypeError: where ``fn`` is not callable.
    """
    if not callable(fn):
        raise ArgumentTypeError(f"map_arg takes a function, not {type(fn).__name__}")
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as a graph is printed: nodes with a percent sign."""
    if hasattr(type(arg), "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        items = ", ".join(_format_arg(item) for i, item in enumerate(arg) if i < max_list_len)
        rest = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}{rest}]"
        return f"({items}{',' if len(arg) == 1 else ''}{rest})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key}: {_format_arg(value)}' for key, value in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One step of a :class:`~gradwire.fx.Graph`.

    Attributes:
        op: its kind. ``placeholder`` is an input, ``get_attr`` an attribute of the module, ``call_function``,
            ``call_method`` and ``call_module`` are calls, ``output`` is what the function returns.
        target: the function called; the name of the method, the input; the path of the module or attribute.
        args, kwargs: arguments, with nodes in place of values. They cannot be changed, only assigned.
        users: the nodes that have it among their arguments, as the keys of a dict.
        type: an annotation, if any.
        meta: what passes note of it.
    """

    graph: Graph
    name: str
    op: str
    target: Any

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any, return_type: Any = None
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"a node is one of {', '.join(OPS)}, not {op!r}")
        if op == "call_function" and not callable(target):
            raise ArgumentValueError(f"node {name!r}: call_function takes something callable, not {target!r:.60}")
        if op != "call_function" and not isinstance(target, str):
            raise ArgumentValueError(f"node {name!r}: the target of {op} is a str, not {target!r:.60}")
        put = object.__setattr__
        for key, value in (
            ("graph", graph), ("name", name), ("op", op), ("target", target), ("type", return_type), ("users", {}),
            ("meta", {}), ("_args", ()), ("_kwargs", immutable_dict()), ("_input_nodes", {}), ("_erased", False),
            ("_prev", self), ("_next", self), ("_repr_fn", None),
        ):  # fmt: skip
            put(self, key, value)
        self._update_args_kwargs(args, kwargs)

    type: Any
    users: dict[Node, None]
    meta: dict[str, Any]
    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]
    _input_nodes: dict[Node, None]
    _erased: bool
    _prev: Node
    _next: Node
    _repr_fn: Callable[[Node], str] | None

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        found: dict[Node, None] = {}

        def note(node: Node) -> Node:
            found.setdefault(node)
            return node

        put = object.__setattr__
        put(self, "_args", map_arg(tuple(args), note))
        put(self, "_kwargs", map_arg(dict(kwargs), note))
        put(self, "_input_nodes", found)
        for node in found:
            node.users.setdefault(self)

    # Order

    @property
    def next(self) -> Node:
        """The node after it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move ``x`` before this node."""
        if self.graph is not x.graph:
            raise AssertionError("a node moves within its graph only")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._changed_order()

    def append(self, x: Node) -> None:
        """Move ``x`` behind this node."""
        if x is not self:
            self._next.prepend(x) if self._next is not x else None

    _prepend = prepend

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    @property
    def _sort_key(self) -> int:
        return self.graph._position(self)

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # Arguments

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments."""
        return self._args

    @args.setter
    def args(self, value: tuple[Any, ...]) -> None:
        self._update_args_kwargs(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, value)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace a positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put in a positional argument."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"an argument goes to a place from 0 to {len(self.args)}, not {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set a keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Put another node in its place among the arguments of its users, or of those that ``delete_user_cb`` is true
        for. Returns the users that were changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(f"meta of {self.name} goes to a node without any; {replace_with.name} has some")
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            self._told_of_replacement(replace_with, user)
            user._replace_input(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace one node by another among its arguments."""
        old_input._told_of_replacement(new_input, self)
        self._replace_input(old_input, new_input)

    def _told_of_replacement(self, new: Node, user: Node) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=self, new=new.name, user=user)

    def _replace_input(self, old: Node, new: Node) -> None:
        def swap(node: Node) -> Any:
            return new if node is old else node

        self._update_args_kwargs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    # Facts

    @property
    def stack_trace(self) -> str | None:
        """Where the program made it, if that was recorded."""
        found: str | None = self.meta.get("stack_trace")
        return found

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it does more than compute a value, so that it stays without users."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError(
                    f"whether module {self.target!r} may be removed is unknown: no module has the graph"
                )
            return bool(getattr(owner.get_submodule(self.target), "_is_impure", False))
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            if self.target in _side_effectful_functions or name in ("_assert", "_assert_is_none"):
                return True
            own = _names.home_of(self.target) is not None
            return own and (name.endswith("_") or (impure_random and name in RANDOM) or bool(self.kwargs.get("out")))
        return False

    def normalized_arguments(
        self, root: Any, arg_types: Any = None, kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False
    ) -> Any:
        """Its arguments by the function's or module's signature (:mod:`.operator_schemas`); None where unknown."""
        from . import operator_schemas

        if self.op == "call_function":
            return operator_schemas.normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return operator_schemas.normalize_module(
                root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    # Text

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        name, module = getattr(target, "__name__", None), getattr(target, "__module__", None)
        if name is not None and module == "_operator":
            return f"operator.{name}"
        if name is not None and module == "builtins" and getattr(builtins, name, None) is target:
            return f"builtins.{name}"
        return qualified(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """One line about it, as ``print(graph)`` shows. With ``placeholder_names``, an input goes there instead."""
        kind = f"{shown_type(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target + (f": {shown_type(self.type)}" if self.type else ""))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {shown_type(self.type)}"
            return f"return {self.args[0]}"
        known = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
        if include_tensor_metadata and isinstance(known, Tensor):
            form = f"{short_dtype(known.dtype)}{list(known.shape)}{list(known.stride())}{known.device}"
            head = f'%{self.name} : Tensor "{form}"[num_users={len(self.users)}] = {self.op}'
        target = self._pretty_print_target(self.target)
        return f"{head}[target={target}](args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "name":
            for user in self.users:
                for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
                    hook(old=self, new=value, user=user)
        object.__setattr__(self, name, value)


RANDOM: Final = frozenset({
    "bernoulli", "dropout", "alpha_dropout", "feature_alpha_dropout", "feature_dropout", "multinomial", "normal",
    "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "rrelu",
})  # fmt: skip
"""Functions that draw random numbers: removing a call changes the numbers of those after it."""


def short_dtype(dtype: DType) -> str:
    """A dtype in few letters: ``f32``, ``i64``, ``bf16``."""
    name = dtype.name
    if name == "bool":
        return "b8"
    for long, short in (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


__all__ = ["Argument", "Node", "Target", "base_types", "has_side_effect", "map_aggregate", "map_arg"]


def qualified_name_of_call(submodules: Mapping[str, Any], node: Node) -> str:
    """The name of what a node calls: a function's path, a method's name, a module's class."""
    if node.op == "call_module":
        return shown_type(type(submodules[node.target]))
    return node._pretty_print_target(node.target)
