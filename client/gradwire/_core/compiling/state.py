"""What a recorded function may look at: the objects that it can reach, as they were when it was recorded.

A replay is right only while all of that is as it was. So every place that holds something is noted with what it held,
and looked at again before each replay: constants by value, everything else by identity. Tensors are noted by what
decides how operations on them are recorded, never by their values, which no body sees without reading them.
"""

from __future__ import annotations

import dis
import sys
from array import array
from collections import deque
from collections.abc import Iterator
from functools import lru_cache, partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Meta

from ..context.hook_handles import HookTable
from ..context.size import Size, device
from ..graph.graph_mirror import Node
from ..optimizers.optimizer import Optimizer
from ..session.session import Session
from ..tensor.own_attributes import everything
from ..tensor.tensor import Tensor
from .purity_check import OURS, PROGRAM, kind_of, module_kind

MOST_PLACES: Final = 50_000
MOST_ARRAY_BYTES: Final = 1 << 16
MISSING: Final = object()

CONSTANTS: Final = (
    bool, int, float, complex, str, bytes, type(None), DType, device, Size, range, slice, type(Ellipsis), Meta,
    type(NotImplemented),
)  # fmt: skip
_NUMBERS: Final = (int, float, complex)


class NotReplayable(Exception):
    """The function cannot be replayed, for the reason given."""


class StatePath(NamedTuple):
    """Something that holds a value: a dictionary or a list, and the key. ``path`` is for people."""

    holder: Any
    key: Any
    value: Any
    path: str


Facts = tuple[Any, ...]


def facts(tensor: Tensor) -> Facts:
    """What decides how operations on a tensor are recorded, and what becomes of its gradient."""
    return (
        tensor._form, type(tensor), tensor._node is None, tensor._requires, tensor._grad_state,
        tensor._grad_proxy is None, tensor._inference, tensor._chosen, tensor._retains, tensor._base_tensor is None,
        tensor._creation,
    )  # fmt: skip


def attributes_of(tensor: Tensor) -> list[str]:
    """Names of what the program has attached to a tensor."""
    return [name for name in everything(tensor) if name[0] != "_" and name not in Tensor.__annotations__]


def same(found: Any, value: Any) -> bool:
    """Whether a place holds what it held."""
    if found is value:
        return True
    kind = type(value)
    if type(found) is not kind or not issubclass(kind, (*CONSTANTS, tuple)):
        return False
    if kind is tuple:
        return len(found) == len(value) and all(map(same, found, value))
    if kind is float:
        return repr(found) == repr(value)  # 0.0 is not -0.0, and NaN is NaN
    return bool(found == value)


class ReachableState:
    """All that can be reached from some roots.

    Attributes:
        places: dictionaries' and lists' entries.
        sizes: how many entries each container has.
        cells: closures' variables.
        tensors: by id of the proxy: the proxy, its facts and its path.
        arrays: NumPy arrays with their bytes.
        codes: the code of the program's functions found.
        optimizers: gradwire's own, whose numbers may change: a replay asks for them anew.
        objects: ids of everything met, which :attr:`kept` keeps alive.

    Raises:
        Unfit: for something whose changes could not be noticed.
    """

    def __init__(self, roots: list[tuple[str, Any]]) -> None:
        self.places: list[StatePath] = []
        self.sizes: list[tuple[Any, int, str]] = []
        self.cells: list[tuple[CellType, Any, str]] = []
        self.tensors: dict[int, tuple[Tensor, Facts, str]] = {}
        self.arrays: list[tuple[Any, bytes, str]] = []
        self.codes: set[CodeType] = set()
        self.optimizers: list[Optimizer] = []
        self.kept: dict[int, Any] = {}
        self._modules: set[tuple[int, int]] = set()
        self._todo: deque[tuple[str, Any]] = deque(roots)
        while self._todo:
            path, value = self._todo.popleft()
            self._visit(path, value)
            if len(self.kept) > MOST_PLACES:
                raise NotReplayable(f"it can reach more than {MOST_PLACES:,} objects")

    # Looking again

    def settle(self) -> None:
        """No place is added or taken away any more: from now on it is looked quickly."""
        self._quick = [(p.holder.get, p.key, p.value) for p in self.places if type(p.holder) is dict]
        self._slow = [p for p in self.places if type(p.holder) is not dict]

    def holds(self) -> bool:
        """Whether all is as it was."""
        for get, key, value in self._quick:
            found = get(key, MISSING)
            if found is not value and not same(found, value):
                return False
        places, self.places = self.places, self._slow
        try:
            return next(self.changed(), None) is None
        finally:
            self.places = places

    def changed(self) -> Iterator[tuple[Any, Any, str]]:
        """What is not as it was: the holder, the key and the path."""
        for place in self.places:
            holder, key, value, path = place
            found = _entry(holder, key)
            if found is not value and not same(found, value):
                yield holder, key, path
        for container, size, path in self.sizes:
            if len(container) != size:
                yield container, MISSING, f"{path} (its length)"
        for cell, value, path in self.cells:
            found = _content(cell)
            if found is not value and not same(found, value):
                yield cell, MISSING, path
        for values, data, path in self.arrays:
            if values.tobytes() != data:
                yield values, MISSING, path

    # Noting

    def _visit(self, path: str, value: Any) -> None:
        if isinstance(value, CONSTANTS) or id(value) in self.kept:
            return
        self.kept[id(value)] = value
        if isinstance(value, Tensor):
            self._tensor(path, value)
        elif isinstance(value, Optimizer):
            self._optimizer(path, value)
        elif hasattr(type(value), "_function_replayed"):
            self._todo.append((path, value._function_replayed))
        elif isinstance(value, FunctionType):
            self._function(path, value)
        elif isinstance(value, MethodType):
            self._todo += [(path, value.__func__), (f"{path}.__self__", value.__self__)]
        elif isinstance(value, partial):
            self._todo += [(path, value.func), (f"{path}.args", value.args), (f"{path}.keywords", value.keywords)]
        elif isinstance(value, type):
            self._class(path, value)
        elif isinstance(value, (ModuleType, BuiltinFunctionType, Session, Node, property)):
            pass  # modules are looked into where a function names what is in them
        elif isinstance(value, np.ndarray):
            self._array(path, value)
        elif isinstance(value, (staticmethod, classmethod)):
            self._todo.append((path, value.__func__))
        elif isinstance(value, dict):
            self._dictionary(path, value)
            if type(value) is not HookTable:
                self._attributes(path, value)
        elif isinstance(value, (list, deque)):
            self.sizes.append((value, len(value), path))
            for i, item in enumerate(value):
                self._note(value, i, item, f"{path}[{i}]")
        elif isinstance(value, tuple):
            self._todo += [(f"{path}[{i}]", item) for i, item in enumerate(value)]
        elif isinstance(value, (set, frozenset)):
            self._set(path, value)
        elif isinstance(value, (GeneratorType, np.random.Generator, np.random.RandomState)) or (
            hasattr(type(value), "__next__")
        ):
            raise NotReplayable(f"it can reach {path}, a {type(value).__name__}: a replay does not move it on")
        elif isinstance(value, (bytearray, memoryview, array)):
            raise NotReplayable(f"it can reach {path}, a {type(value).__name__}, whose changes go unnoticed")
        else:
            self._attributes(path, value)

    def _note(self, holder: Any, key: Any, value: Any, path: str) -> None:
        self.places.append(StatePath(holder, key, value, path))
        self._todo.append((path, value))

    def _tensor(self, path: str, value: Tensor) -> None:
        self.tensors[id(value)] = value, facts(value), path
        if value._grad_proxy is not None:
            self._todo.append((f"{path}.grad", value._grad_proxy))
        for name in attributes_of(value):
            self._note(everything(value), name, everything(value)[name], f"{path}.{name}")

    def _dictionary(self, path: str, value: dict[Any, Any]) -> None:
        self.sizes.append((value, len(value), path))
        for key, item in value.items():
            self._note(value, key, item, f"{path}[{key!r:.40}]")
            if not isinstance(key, CONSTANTS):
                self._todo.append((f"a key of {path}", key))

    def _set(self, path: str, value: set[Any] | frozenset[Any]) -> None:
        if type(value) is frozenset or not value:
            self.sizes.append((value, len(value), path))
        elif all(isinstance(item, CONSTANTS) for item in value):
            self.places.append(StatePath(_Copied(value), None, frozenset(value), path))
        else:
            raise NotReplayable(f"it can reach {path}, a set of objects, whose changes go unnoticed")

    def _array(self, path: str, value: Any) -> None:
        if value.nbytes > MOST_ARRAY_BYTES or value.dtype.hasobject:
            raise NotReplayable(
                f"it can reach {path}, a NumPy array of {value.nbytes:,} bytes, whose changes would go unnoticed: make "
                "a tensor of it, and pass that"
            )
        self.arrays.append((value, value.tobytes(), path))

    def _attributes(self, path: str, value: Any) -> None:
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is dict:
            self.kept[id(attributes)] = attributes
            self.sizes.append((attributes, len(attributes), path))
            for name, item in attributes.items():
                self._note(attributes, name, item, f"{path}.{name}")
        for base in type(value).__mro__:
            for name in vars(base).get("__slots__", ()) if _of_the_program(base) else ():
                if name not in ("__dict__", "__weakref__"):
                    raise NotReplayable(f"it can reach {path}.{name}, a slot, whose changes go unnoticed")
        self._todo.append((type(value).__name__, type(value)))

    def _class(self, path: str, value: type) -> None:
        for base in value.__mro__:
            if not _of_the_program(base):
                continue
            for name, item in list(vars(base).items()):
                if isinstance(item, (FunctionType, staticmethod, classmethod)):
                    self._note(vars(base), name, item, f"{base.__name__}.{name}")
                elif isinstance(item, property):
                    for part in (item.fget, item.fset):
                        if part is not None:
                            self._todo.append((f"{base.__name__}.{name}", part))
                elif not name.startswith("__") and not isinstance(item, (MemberDescriptorType, GetSetDescriptorType)):
                    self._note(vars(base), name, item, f"{base.__name__}.{name}")

    def _function(self, path: str, value: FunctionType) -> None:
        if kind_of(value.__code__.co_filename) != PROGRAM:
            return
        codes = _nested(value.__code__)
        self.codes |= codes
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            content = _content(cell)
            self.cells.append((cell, content, name))
            if isinstance(content, ModuleType):
                self._module(name, content, codes)
            self._todo.append((name, content))
        self._todo += [(f"a default of {value.__name__}", item) for item in value.__defaults__ or ()]
        if value.__kwdefaults__:
            self._visit(f"the defaults of {value.__name__}", value.__kwdefaults__)
        names = value.__globals__
        for name in {n for code in codes for n in _globals_of(code)}:
            if name not in names:
                continue
            found = names[name]
            self.places.append(StatePath(names, name, found, name))
            if isinstance(found, ModuleType):
                self._module(name, found, codes)
            else:
                self._todo.append((name, found))
        for name in {n for code in codes for n in _imports_of(code)}:
            if name in sys.modules:
                self._module(name, sys.modules[name], codes)

    def _module(self, path: str, value: ModuleType, codes: set[CodeType]) -> None:
        """What a function names of a module; of a library's, what is no part of its code."""
        kind = module_kind(value)
        inside = vars(value)
        if kind == OURS or (id(value), id(codes)) in self._modules:
            return
        self._modules.add((id(value), id(codes)))
        for name in sorted({n for code in codes for n in code.co_names if n in inside}):
            found = inside[name]
            if isinstance(found, ModuleType):
                self._module(f"{path}.{name}", found, codes)
            elif kind == PROGRAM or not (callable(found) or isinstance(found, type)):
                self._note(inside, name, found, f"{path}.{name}")

    def _optimizer(self, path: str, value: Optimizer) -> None:
        self.optimizers.append(value)
        for name, item in vars(value).items():
            if name not in ("param_groups", "state", "_has_stepped", "_stepping", "defaults"):
                self._note(vars(value), name, item, f"{path}.{name}")
        self.sizes.append((value.param_groups, len(value.param_groups), f"{path}.param_groups"))
        for i, group in enumerate(value.param_groups):
            self._numbered(f"{path}.param_groups[{i}]", group)
        self.sizes.append((value.state, len(value.state), f"{path}.state"))
        for kept in value.state.values():
            self._numbered(f"{path}.state", kept)

    def _numbered(self, path: str, value: dict[str, Any]) -> None:
        """Options or memory of an optimizer, but for the numbers."""
        self.sizes.append((value, len(value), path))
        for name, item in value.items():
            if type(item) in _NUMBERS or (type(item) is tuple and all(type(n) in _NUMBERS for n in item)):
                continue
            self._note(value, name, item, f"{path}[{name!r}]")


class _Copied:
    """A set as a holder whose one entry is what is in it."""

    def __init__(self, found: set[Any] | frozenset[Any]) -> None:
        self._found = found

    def get(self, _: Any, __: Any) -> frozenset[Any]:
        return frozenset(self._found)


def _entry(holder: Any, key: Any) -> Any:
    if type(holder) is list or type(holder) is deque:
        return holder[key] if key < len(holder) else MISSING
    return holder.get(key, MISSING)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _nested(code: CodeType) -> set[CodeType]:
    """A function's code, and that of the functions defined in it."""
    found = {code}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _nested(constant)
    return found


@lru_cache(4096)
def _imports_of(code: CodeType) -> frozenset[str]:
    return frozenset(str(i.argval) for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME")


def _of_the_program(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return module is None or module_kind(module) == PROGRAM


@lru_cache(4096)
def _globals_of(code: CodeType) -> frozenset[str]:
    return frozenset(
        str(i.argval) for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")
    )
