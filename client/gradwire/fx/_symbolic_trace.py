"""``Tracer``: runs a function on proxies, and has the graph of what it did."""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any, Final

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError

from .._core.context.pytree import tree_flatten, tree_map, tree_unflatten
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.tensor.tensor import Tensor
from ._dispatch import with_proxy
from ._wrapped import _wrapped_fns_to_patch, wrap
from .graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .graph_module import GraphModule
from .node import base_types, map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

_call: Final = Module.__call__
_getattr: Final = Module.__getattr__
_proxyable_classes: dict[type, None] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_tracing: list[bool] = [False]
VARIADIC: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _tracing[0]


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """The metaclass of classes of which a trace records how objects are made from proxies."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = with_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """Stands in ``concrete_args`` for an input of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH: Final = PHBase()


class PHWithMeta(PHBase):
    """The same, with attributes that its node gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _with_plain_arguments(function: FunctionType, count: int) -> FunctionType:
    """The function with ``*args`` and ``**kwargs`` as two arguments more, which take one value each."""
    code = function.__code__.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=function.__code__.co_flags & ~VARIADIC
    )
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__annotations__ = dict(function.__annotations__)
    return made


class Tracer(TracerBase):
    """Traces functions and modules.

    Args:
        autowrap_modules: modules whose functions are recorded as calls (``math.sqrt(proxy)``).
        autowrap_functions: further such functions.
        param_shapes_constant: shapes of parameters are numbers, not nodes.
    """

    _qualname_counter: dict[str, int] = collections.defaultdict(int)

    def __init__(
        self, autowrap_modules: Any = (math,), autowrap_functions: Any = (), param_shapes_constant: bool = False
    ) -> None:
        found = chain.from_iterable(vars(module).items() for module in autowrap_modules)
        self._autowrap_function_ids = {id(v) for name, v in found if not name.startswith("_") and callable(v)}
        self._autowrap_function_ids |= {id(function) for function in autowrap_functions}
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.tensor_attrs: dict[Any, str] = {}

    root: Any

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name for a new attribute of the root: the prefix and a number."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        number = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number + 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node: parameters, buffers and modules of the root are got from there by a node,
        other tensors become attributes of it."""
        members: Any = ()
        if isinstance(a, Parameter):
            members = self.root.named_parameters()
        elif isinstance(a, Tensor):
            members = self.root.named_buffers()
        elif isinstance(a, Module):
            members = self.root.named_modules()
        for name, member in members:
            if member is a:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, Parameter):
            raise NameError(f"a parameter of shape {tuple(a.shape)} is not a member of the traced module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(item) for item in a), {})
        if isinstance(a, Tensor):
            path = self.tensor_attrs.get(a)
            if path is None:
                path = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[a] = path
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if type(a) in _proxyable_classes:
            path = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a module is recorded as one call, as those of ``torch.nn`` are; others are traced through."""
        home: str = m.__module__
        own = home.startswith(("gradwire.nn", "gradwire._core.modules", "torch.nn"))
        return own and type(m).__name__ != "Sequential" and not isinstance(m, _sequential())

    def path_of_module(self, mod: Any) -> str:
        """The path of a module in the root.

        Raises:
            NameError: where it has none.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, member in self.root.named_modules():
            if member is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Any, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What the call of a module gives: a proxy for a leaf, what ``forward`` gives for others."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module is while it is traced: a proxy for a parameter."""
        members: Any = ()
        if isinstance(attr_val, Parameter):
            members = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            members = self.root.named_buffers()
        for name, member in members:
            if member is attr_val:
                if name not in parameter_proxy_cache:
                    factory = functools.partial(self._parameter_proxy, name, attr_val)
                    constant = self.param_shapes_constant and isinstance(attr_val, Parameter)
                    more: dict[str, Any] = {"proxy_factory_fn": factory} if constant else {}
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **more)
                return parameter_proxy_cache[name]
        return attr_val

    def _parameter_proxy(self, name: str, value: Any, node: Any) -> Proxy:
        return ParameterProxy(self, node, name, value)

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
    ) -> tuple[Any, list[Any]]:
        """The function to run, and its arguments: a placeholder for each."""
        plain: Any = inspect.unwrap(root_fn)
        code = plain.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise ArgumentError("``self`` argument cannot be part of *args expansion: forward() has to name it")
            args.append(self.root)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & VARIADIC and total == 1:
            for i, given in enumerate(concrete_args):
                made = self.create_proxy("placeholder", f"input_{i}", (), {})
                if isinstance(given, PHBase) and given is not PH:
                    _transfer_attrs(fr=given, to=made.node)
                args.append(made)
            return root_fn, args
        wanted = names[len(args) : total]
        if isinstance(concrete_args, tuple):
            if len(wanted) != len(concrete_args):
                raise ArgumentError(f"{len(concrete_args)} concrete arguments for a function of {len(wanted)}")
            concrete_args = dict(zip(wanted, concrete_args, strict=True))
        signature = inspect.signature(plain)
        args.extend(self._placeholder(name, concrete_args, signature, plain) for name in wanted)
        if code.co_kwonlyargcount or code.co_flags & VARIADIC:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._placeholder("*" + next(rest), concrete_args, signature, plain))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._placeholder("**" + next(rest), concrete_args, signature, plain))
            root_fn = _with_plain_arguments(root_fn, len(args))
        flat, structure = tree_flatten(tuple(args))
        if len(flat) == len(args) and all(a is b for a, b in zip(flat, args, strict=True)):
            return root_fn, args
        codegen = _PyTreeCodeGen(_PyTreeInfo(names[:total], structure, None))
        self.graph._codegen = codegen

        def flattened(*leaves: Any) -> list[Any]:
            made, found = tree_flatten(root_fn(*tree_unflatten(list(leaves), structure)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=found)
            return made

        return flattened, flat

    def _placeholder(self, name: str, concrete: Any, signature: inspect.Signature, function: Any) -> Any:
        if name.startswith("*"):
            default: tuple[Any, ...] = ()
        else:
            found = signature.parameters[name].default
            default = () if found is inspect.Parameter.empty else (found,)
        if concrete is None or name not in concrete:
            kind = getattr(function, "__annotations__", {}).get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def specialized(value: Any) -> Any:
            nonlocal count
            count += 1
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                if value is not PH:
                    _transfer_attrs(fr=value, to=made.node)
                return made
            self._assert_specialized(name, made, value)
            return value

        return tree_map(specialized, concrete[name])

    def _assert_specialized(self, name: str, made: Any, value: Any) -> None:
        told = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (made, told), {})
        elif isinstance(value, base_types) and not isinstance(value, Tensor):
            self.create_proxy("call_function", _assertion(), (made == value, told), {})
        else:
            warnings.warn(
                f"the graph does not check that {name} is what it was specialized to: a {type(value).__name__}",
                stacklevel=2,
            )

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """The graph of a module or a function.

        Args:
            root: what is traced.
            concrete_args: arguments that have a value already, by name; ``PH`` inside of containers for those that
                have not.
        """
        before, _tracing[0] = _tracing[0], True
        try:
            return self._traced(root, concrete_args)
        finally:
            _tracing[0] = before
            self.submodule_paths = None

    def _traced(self, root: Any, concrete_args: Any) -> Graph:
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"{type(root).__name__} has no method {self.traced_func_name!r} to trace")
            function: Any = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        self._find_tensors(self.root, "")
        if not isinstance(function, FunctionType):
            raise ArgumentTypeError(f"a module or a Python function can be traced, not {type(function).__name__}")
        names = function.__globals__
        traced, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with _patched() as patcher:
            patcher.patch_method(Module, "__getattr__", self._module_getattr(), deduplicate=False)
            patcher.patch_method(Module, "__call__", self._module_call(patcher), deduplicate=False)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
            returned = inspect.unwrap(traced).__annotations__.get("return")
            kind = None if traced.__name__ == "flattened" else returned
            self.create_node("output", "output", (self.create_arg(traced(*args)),), {}, type_expr=kind)
        return self.graph

    def _find_tensors(self, module: Any, prefix: str) -> None:
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                self.tensor_attrs[value] = prefix + name
        for name, child in module.named_children():
            self._find_tensors(child, f"{prefix}{name}.")

    def _module_getattr(self) -> Callable[..., Any]:
        known: dict[str, Any] = {}

        @functools.wraps(_getattr)
        def module_getattr(mod: Any, attr: str) -> Any:
            return self.getattr(attr, _getattr(mod, attr), known)

        return module_getattr

    def _module_call(self, patcher: _Patcher) -> Callable[..., Any]:
        @functools.wraps(_call)
        def module_call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _call(mod, *args, **kwargs)

            names = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        return module_call

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = Tracer.__new__(type(self))
        for key, value in self.__dict__.items():
            made.__dict__[key] = copy.copy(value) if key == "_autowrap_search" else copy.deepcopy(value, memo)
        return made


@functools.cache
def _sequential() -> Any:
    from .. import nn

    return nn.Sequential


@functools.cache
def _assertion() -> Any:
    import gradwire

    found = getattr(gradwire, "_assert", None)
    return _assert_holds if found is None else found


def _assert_holds(condition: Any, message: str) -> None:
    """Raise unless a condition is true."""
    if not condition:
        raise AssertionError(message)


# Functions that are recorded as calls, whatever they do


def _recording_function(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = with_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _recording_method(cls: type, name: str) -> Callable[..., Any]:
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = with_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class _Patcher:
    """Puts other functions in the place of some, and undoes it."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._patched: set[tuple[int, str]] = set()
        self._visited: set[int] = set()

    def patch(self, names: dict[str, Any], name: str, new: Callable[..., Any]) -> None:
        """Replace a global name of a module."""
        if (id(names), name) in self._patched:
            return
        self._patched.add((id(names), name))
        if name in names:
            self._undo.append(functools.partial(names.__setitem__, name, names[name]))
        elif hasattr(builtins, name):
            self._undo.append(functools.partial(names.__delitem__, name))
        else:
            raise NameError(f"torch.fx.wrap({name!r}): the module has no such name")
        names[name] = new

    def patch_method(self, cls: type, name: str, new: Callable[..., Any], deduplicate: bool = True) -> None:
        """Replace a method."""
        if deduplicate and (id(cls), name) in self._patched:
            return
        self._patched.add((id(cls), name))
        self._undo.append(functools.partial(setattr, cls, name, getattr(cls, name)))
        setattr(cls, name, new)

    def visit_once(self, thing: Any) -> bool:
        """Whether it is seen for the first time."""
        new = id(thing) not in self._visited
        self._visited.add(id(thing))
        return new

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()


@contextmanager
def _patched() -> Iterator[_Patcher]:
    patcher = _Patcher()
    try:
        yield patcher
    finally:
        patcher.undo()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    for (_, name), names in list(_wrapped_fns_to_patch.items()):
        found = names[name] if name in names else getattr(builtins, name, None)
        if found is not None:
            patcher.patch(names, name, _recording_function(found))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _recording_method(cls, name))


def _autowrap_check(patcher: _Patcher, names: dict[str, Any], function_ids: set[int]) -> None:
    if patcher.visit_once(names):
        for name, value in list(names.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(names, name, _recording_function(value))


def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """A module that does what a module or a function does, with the graph of it.

    Args:
        root: what is traced.
        concrete_args: arguments that have a value already, by name.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    """Raise unless a value is None."""
    if value is not None:
        raise AssertionError(msg)


__all__ = [
    "PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing",
    "map_aggregate", "symbolic_trace", "wrap",
]  # fmt: skip
