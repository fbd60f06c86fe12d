"""``Proxy``: stands for a value while a function is traced, and records what is done with it."""

from __future__ import annotations

import collections
import copy
import dis
import enum
import inspect
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any, Final
from weakref import ref

from gradwire_protocol.errors import ArgumentError, GradwireError

from .._core.context.pytree import tree_leaves
from .._core.modules.parameter import Parameter
from . import _names, traceback
from ._codegen import MAGIC, REFLECTABLE
from ._function_forms import as_recorded, form_of
from .graph import Graph
from .node import Node, base_types, map_arg


class TraceError(ValueError, GradwireError):
    """What a program does with a value that a trace does not have."""

    def __init__(self, message: str = "") -> None:
        GradwireError.__init__(self, message)


class Scope:
    """The module that is traced at a time.

    Attributes:
        module_path: its path in the root.
        module_type: its class.
    """

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Inside of a ``with`` of it, ``scope`` tells of another module."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        self._scope = scope
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class TracerBase:
    """Makes nodes of a graph from what is done with proxies."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, Any]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Add a node to the graph. Subclasses check or change here what is recorded."""
        if kind == "call_function" and self.check_mutable_operations:
            from .operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        made = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[made.name] = (self.scope.module_path, self.scope.module_type)
        if traceback.has_preserved_node_meta():
            made.meta.update(traceback.get_current_meta())
        elif self.module_stack:
            made.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not made.stack_trace:
            made.stack_trace = traceback.program_stack()
        return made

    def proxy(self, node: Node) -> Proxy:
        """A proxy for a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:  # fmt: skip
        """Add a node, with proxies and tensors among its arguments, and return a proxy for it."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node: nodes for proxies, inside of containers, too.

        Raises:
            NotImplementedError: for objects that a graph cannot hold.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(type(a), "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        if is_dataclass(a) and not isinstance(a, type):
            given = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), given)
        raise NotImplementedError(f"a graph holds no argument of type {type(a)}")

    def _key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key

        def refuse(node: Node) -> Any:
            raise ArgumentError(f"a key of a dict among a node's arguments is a constant; it contains node {node}")

        made = self.create_arg(key)
        map_arg(made, refuse)
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a proxy, which a trace does not know. Subclasses may decide."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: the value is not known while a "
            "function is traced. Give it by concrete_args, or put the code into a function and torch.fx.wrap that"
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The items of a proxy, of which a trace does not know how many there are. Subclasses may decide."""
        raise TraceError(
            "Proxy object cannot be iterated: how many items it has is not known while a function is traced. That "
            "happens in loops, and where it is passed on as *args or **kwargs. A loop over range() with indices works"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy, as ``**proxy`` asks for them. Subclasses may decide."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds to a graph what is done with the proxies of its nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: object) -> None:
    """The ``assert`` of a program, as a traced call."""
    if not x:
        raise AssertionError("an assertion of the traced function does not hold")


def _instruction(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    """The instructions of a frame, and which one runs."""
    found = list(dis.get_instructions(frame.f_code))
    return found, bisect_left(found, frame.f_lasti, key=lambda step: step.offset)


BEFORE_THE_FIRST: Final[list[Callable[[], None]]] = []
AFTER_THE_LAST: Final[list[Callable[[], None]]] = []
"""What is done when there is a proxy, and when there is none any more."""

_LIVING: Final[dict[int, ref[Proxy]]] = {}


def _count(proxy: Proxy) -> None:
    number = id(proxy)
    if not _LIVING:
        for prepare in BEFORE_THE_FIRST:
            prepare()
    _LIVING[number] = ref(proxy, lambda _: _forget(number))


def _forget(number: int) -> None:
    _LIVING.pop(number, None)
    if not _LIVING:
        for restore in AFTER_THE_LAST:
            restore()


class Proxy:
    """Stands for the value of a node.

    Operators, methods, attributes, and functions of ``torch`` that get it add nodes to the graph, and give proxies for
    these. It has no value: loops over it, ``if`` and ``len`` raise.
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        _count(self)
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)  # it gets a node when it is used otherwise than by a call

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        _count(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = Proxy.__new__(type(self))
        _count(made)
        for key, value in self.__dict__.items():
            try:
                made.__dict__[key] = copy.deepcopy(value, memo)
            except Exception:  # a tracer of a program's own may refuse
                made.__dict__[key] = copy.copy(value)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        if caller is not None:
            steps, at = _instruction(caller)
            if steps[at].opname == "UNPACK_SEQUENCE":
                return (self[i] for i in range(steps[at].argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        if self.tracer.trace_asserts and caller is not None and _is_of_assert(caller):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Its keys, as ``**proxy`` asks for them."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise ArgumentError(
            "'len' is not supported in symbolic tracing by default: the length is not known while a function is "
            "traced. torch.fx.wrap('len') in the program's module has the call recorded"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record the call of a function of ``torch``."""
        args, kwargs = args or (), kwargs or {}
        tracers = {id(leaf.tracer): leaf.tracer for leaf in _leaves((args, kwargs)) if isinstance(leaf, Proxy)}
        if len(tracers) != 1:
            raise ArgumentError(f"{orig_method}: a call gets proxies of one tracer, not of {len(tracers)}")
        tracer = next(iter(tracers.values()))
        if _names.home_of(orig_method) is None and (method := _names.method_of(orig_method)) is not None:
            return tracer.create_proxy("call_method", METHODS.get(method, method), args, kwargs)
        if isinstance(form := form_of(orig_method), str):
            return tracer.create_proxy("call_method", form, (*args, *kwargs.values()), {})
        args, kwargs = as_recorded(orig_method, args, kwargs)
        name = tracer.graph._target_to_str(orig_method)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


METHODS: Final = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div", "__matmul__": "matmul",
    "__pow__": "pow", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__radd__": "add", "__rmul__": "mul",
}  # fmt: skip
"""The methods that operators between a tensor and a proxy are recorded as."""


def _leaves(given: Any) -> Iterator[Any]:
    for leaf in tree_leaves(given):
        if isinstance(leaf, slice):
            yield from (leaf.start, leaf.stop, leaf.step)
        else:
            yield leaf


def _is_of_assert(frame: FrameType) -> bool:
    """Whether the truth that a frame asks for decides over an ``assert``."""
    steps, at = _instruction(frame)
    if not steps[at].opname.endswith("JUMP_IF_TRUE") and steps[at].opname != "TO_BOOL":
        return False
    return any(step.opname in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT") for step in steps[at + 1 : at + 4])


class MetaProxy(Proxy):
    """A proxy whose node knows an example of its value (``meta["val"]``), which is computed for new nodes, too."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = next(arg for arg in args if isinstance(arg, MetaProxy))
        made = super().__torch_function__(orig_method, types, args, kwargs)
        examples = [arg.node.meta["val"] if isinstance(arg, Proxy) else arg for arg in args]
        with first.fake_mode:
            made.node.meta["val"] = orig_method(*examples, **(kwargs or {}))
        return MetaProxy(made.node, made.tracer, first.fake_mode)


class Attribute(Proxy):
    """An attribute of a proxy: the call of a method if it is called, a node of its own if it is used otherwise."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter whose shape is that of the parameter, as a constant."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"a ParameterProxy stands for a Parameter, not {type(param).__name__}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """The parameter's."""
        return self.param.size(*args)

    def dim(self) -> int:
        """The parameter's."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The parameter's."""
        return self.param.ndim

    def numel(self) -> int:
        """The parameter's."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's."""
        return self.param.numel()


def _operator(name: str) -> None:
    target = getattr(operator, name)

    def method(self: Proxy, *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (self, *args), {})

    method.__name__ = f"__{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


def _reflected(name: str) -> None:
    target = getattr(operator, name)

    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = f"__r{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


for _name in MAGIC:
    if hasattr(operator, _name):
        _operator(_name)
for _name in REFLECTABLE:
    if hasattr(operator, _name) and _name != "getitem":
        _reflected(_name)
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]

__all__ = [
    "Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager",
    "TraceError", "TracerBase",
]  # fmt: skip
