"""``torch.utils._pytree``: nested containers of values, and classes that programs register as such.

``_core/context/pytree.py`` takes trees apart; here are registering, paths, and structures written down as text.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import json
import sys
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, Unsupported

from .._core.context.pytree import (
    LEAF,
    NAMES,
    SUPPORTED_NODES,
    GetAttrKey,
    IsLeaf,
    NodeDef,
    TreeSpec,
    is_namedtuple_class,
    node_type_of,
    tree_flatten,
    tree_iter,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from .._core.context.pytree import MappingKey as MappingKey
from .._core.context.pytree import SequenceKey as SequenceKey
from .._core.context.pytree import broadcast_prefix as _broadcast

__all__ = [
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec",
    "ToDumpableContextFn", "TreeSpec", "UnflattenFn", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "register_pytree_node",
    "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip

Context = Any
PyTree = Any
KeyEntry = Any
KeyPath = tuple[Any, ...]
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Any]]
DumpableContext = Any
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
PyTreeSpec = TreeSpec
NO_SERIALIZED_TYPE_NAME_FOUND: Final = "NO_SERIALIZED_TYPE_NAME_FOUND"
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL: Final = 1
STANDARD_DICT_TYPES: Final = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES: Final = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
CONSTANT_NODES: Final[set[type]] = set()


class _LeafType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TreeSpec) and instance.is_leaf() and instance.type is None

    def __call__(cls) -> TreeSpec:
        return LEAF


class LeafSpec(metaclass=_LeafType):
    """The structure of a single leaf: ``LeafSpec()`` is always the same one."""


_LEAF_SPEC: Final = LEAF
_broadcast_to_and_flatten = _broadcast


# --- registering -----------------------------------------------------------------------------------------------------


class _SerializeNodeDef(tuple[Any, ...]):
    """How the structure of a registered class is written down: class, name, and two functions for its context."""

    __slots__ = ()
    typ = property(lambda self: self[0])
    serialized_type_name = property(lambda self: self[1])
    to_dumpable_context = property(lambda self: self[2])
    from_dumpable_context = property(lambda self: self[3])


SUPPORTED_SERIALIZED_TYPES: Final[dict[Any, _SerializeNodeDef]] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: Final[dict[str, Any]] = {}


def _private_register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, *, serialized_type_name: str | None = None,
    to_dumpable_context: Any = None, from_dumpable_context: Any = None, flatten_with_keys_fn: Any = None,
) -> None:  # fmt: skip
    """Register a class, also over an earlier registration, which warns."""
    if cls in SUPPORTED_NODES:
        warnings.warn(f"{cls} is already registered as pytree node: the last one counts", stacklevel=3)
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ArgumentValueError(f"{cls}: to_dumpable_context and from_dumpable_context are given together")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef((cls, name, to_dumpable_context, from_dumpable_context))
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, *, serialized_type_name: str | None = None,
    to_dumpable_context: Any = None, from_dumpable_context: Any = None, flatten_with_keys_fn: Any = None,
) -> None:  # fmt: skip
    """Make objects of a class containers.

    Args:
        flatten_fn: gives a list of an object's items, and a context.
        unflatten_fn: makes an object of items and context.
        serialized_type_name, to_dumpable_context, from_dumpable_context: how its structure is written down.
        flatten_with_keys_fn: like ``flatten_fn``, with pairs of a key and an item.

    Raises:
        ArgumentValueError: for a class that is registered.
    """
    if cls in SUPPORTED_NODES:
        raise ArgumentValueError(f"{cls} is already registered as pytree node")
    _private_register_pytree_node(
        cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context, from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )  # fmt: skip


def _register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, to_str_fn: Any = None, maybe_from_str_fn: Any = None, *,
    serialized_type_name: str | None = None, to_dumpable_context: Any = None, from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:  # fmt: skip
    """The older form of :func:`register_pytree_node`, which may register a class again."""
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn("to_dumpable_context replaces to_str_fn and maybe_from_str_fn", FutureWarning, stacklevel=2)
    _private_register_pytree_node(
        cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context, from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )  # fmt: skip


def _deregister_pytree_node(cls: type) -> None:
    del SUPPORTED_NODES[cls]
    written = SUPPORTED_SERIALIZED_TYPES.pop(cls)
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(written.serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples a name under which its structures are written down."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef((cls, serialized_type_name, None, None))
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Make objects of a dataclass containers of their fields. Fields that are ``None`` are no leaves.

    Args:
        field_names: the fields that are items; by default all that ``__init__`` takes.
        drop_field_names: fields that are left out, so that they have their default in what is made again.

    Raises:
        ArgumentValueError: where the names are not the fields, or are missing for a class that is no dataclass.
    """
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ArgumentValueError(f"{cls} is no dataclass: field_names says what its items are")
    else:
        own = {f.name for f in dataclasses.fields(cls) if f.init}
        if field_names is None:
            field_names = [f.name for f in dataclasses.fields(cls) if f.init]
        elif set(field_names) != own - set(drop_field_names or ()):
            raise ArgumentValueError(
                f"field_names does not include all dataclass fields of {cls}, or others: fields are {sorted(own)}, "
                f"named are {field_names}, dropped are {drop_field_names or []}"
            )
    names = list(field_names)

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        values = {name: getattr(obj, name) for name in names}
        there = [name for name in names if values[name] is not None]
        return [values[name] for name in there], [there, [name for name in names if values[name] is None]]

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        there, absent = context
        return cls(**dict(zip(there, values, strict=True)), **dict.fromkeys(absent))

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)], context

    _private_register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """The context of a container that has no leaves: the object itself."""

    value: Any


def register_constant(cls: type) -> None:
    """Make objects of a class containers without leaves: they stay as they are, as a part of the structure.

    Raises:
        ArgumentTypeError: for a class that has neither comparison nor hash of its own.
    """
    if vars(cls).get("__eq__", cls.__eq__) is object.__eq__ or cls.__hash__ is None:
        raise ArgumentTypeError(f"register_constant: {cls} has an __eq__ and a __hash__ of its own")

    def flatten(x: Any) -> tuple[list[Any], Context]:
        return [], ConstantNode(x)

    _private_register_pytree_node(cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten)
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether the class went through :func:`register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _is_constant_holder(spec: TreeSpec) -> bool:
    return isinstance(spec.context, ConstantNode)


def _retrieve_constant(spec: TreeSpec) -> Any:
    if not _is_constant_holder(spec):
        raise AssertionError("the structure is not that of a constant")
    return tree_unflatten([], spec)


# --- kinds of nodes --------------------------------------------------------------------------------------------------


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether it is a class of CPython's structure sequences, such as ``time.struct_time``."""
    counts = [getattr(cls, name, None) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")]
    subclassed = 1 << 10  # Py_TPFLAGS_BASETYPE
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and all(
        isinstance(count, int) for count in counts
    ) and not cls.__flags__ & subclassed  # fmt: skip


def is_structseq_instance(obj: object) -> bool:
    """Whether it is a structure sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether it is a structure sequence, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance
_get_node_type = node_type_of


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a value is no container, or ``is_leaf`` says so."""
    return (is_leaf is not None and is_leaf(tree)) or node_type_of(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def _functions_of(kind: Any) -> tuple[Any, Any, Any]:
    found = SUPPORTED_NODES[kind]
    return found.flatten_fn, found.unflatten_fn, found.flatten_with_keys_fn


_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = _functions_of(tuple)
_list_flatten, _list_unflatten, _list_flatten_with_keys = _functions_of(list)
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = _functions_of(dict)
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = _functions_of(namedtuple)
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = _functions_of(OrderedDict)
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = _functions_of(defaultdict)
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = _functions_of(deque)


# --- structures ------------------------------------------------------------------------------------------------------


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple, from those of its items."""
    return TreeSpec(tuple, None, _all_specs(list(iterable)))


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """The structure of a dictionary, from those of its items."""
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), _all_specs(list(items.values())))


def _all_specs(children: list[Any]) -> list[TreeSpec]:
    for child in children:
        if not isinstance(child, TreeSpec):
            raise ArgumentValueError(f"the items of a structure are structures, not {child!r:.60}")
    return children


# --- mapping ---------------------------------------------------------------------------------------------------------


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call a function with each leaf, and return the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for row in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests], strict=True):
        func(*row)
    return tree


def _is_asked(types_or_pred: Any) -> Callable[[Any], bool]:
    if isinstance(types_or_pred, (type, tuple, types.UnionType)):
        return lambda x: isinstance(x, types_or_pred)
    if callable(types_or_pred):
        return types_or_pred
    raise ArgumentTypeError(f"a class, several, or a function tells leaves apart, not {types_or_pred!r:.60}")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is called for values of these classes, and others stay as they are."""
    asked = _is_asked(type_or_types_or_pred)
    return lambda func: lambda x: func(x) if asked(x) else x


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """:func:`tree_map` over leaves of some classes, or those that a function chooses. Others stay as they are."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """:func:`tree_map_` over leaves of some classes, or those that a function chooses."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a function is true of all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a function is true of some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a function is true of all leaves of some classes."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a function is true of some leaf of some classes."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


# --- paths -----------------------------------------------------------------------------------------------------------


def _generate_key_paths(key_path: KeyPath, tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[tuple[KeyPath, Any]]:
    found = None if is_leaf is not None and is_leaf(tree) else SUPPORTED_NODES.get(node_type_of(tree))
    if found is None:
        yield key_path, tree
        return
    if found.flatten_with_keys_fn is None:
        raise ArgumentValueError(
            f"{found.type} was registered without flatten_with_keys_fn: its items have no places in a path"
        )
    for key, item in found.flatten_with_keys_fn(tree)[0]:
        yield from _generate_key_paths((*key_path, key), item, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves in order, each with the keys that lead to it."""
    return list(_generate_key_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with the keys that lead to them, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """:func:`tree_map` of a function whose first argument is the path of the leaf."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*pair, *row) for pair, *row in zip(found, *others, strict=True)])


def keystr(kp: KeyPath) -> str:
    """A path as one writes it in Python: ``['a'][0].b``."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What is at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# --- structures as text ----------------------------------------------------------------------------------------------


class EnumEncoder(json.JSONEncoder):
    """JSON with members of enumerations."""

    def default(self, o: object) -> Any:
        """A member as its class and name."""
        if isinstance(o, Enum):
            return {"__enum__": True, "fqn": f"{type(o).__module__}:{type(o).__qualname__}", "name": o.name}
        return super().default(o)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The member that :class:`EnumEncoder` has written. Nothing is imported for it: the class is there already.

    Raises:
        Unsupported: when it is not.
    """
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = vars(found).get(part) if found is not None else None
    if not (isinstance(found, type) and issubclass(found, Enum)):
        raise Unsupported(f"{obj['fqn']!r:.80} is no enumeration of a module that the program has imported")
    return found[obj["name"]]


_FACTORIES: Final = {
    f"{kind.__module__}:{kind.__qualname__}": kind
    for kind in (*[getattr(builtins, n) for n in ["list", "dict", "set", "tuple", "int", "float", "str", "bool"]],
                 *[getattr(collections, n) for n in ["OrderedDict", "deque", "Counter"]])
}  # fmt: skip
"""Default factories that a text may name."""


def _write_defaultdict(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }  # fmt: skip


def _read_defaultdict(written: DumpableContext) -> Context:
    name = f"{written['default_factory_module']}:{written['default_factory_name']}"
    if name not in _FACTORIES:
        raise Unsupported(f"the default factory {name!r:.80} of a written structure is none of {sorted(_FACTORIES)}")
    return [_FACTORIES[name], written["dict_context"]]


def _write_namedtuple(context: Context) -> DumpableContext:
    found = SUPPORTED_SERIALIZED_TYPES.get(context)
    if found is None or found.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise Unsupported(f"named tuples of {context} have no name to write: _register_namedtuple gives one")
    return found.serialized_type_name


def _read_namedtuple(written: DumpableContext) -> Context:
    if written not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise Unsupported(f"no named tuples are registered as {written!r:.80}")
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[written]


_CONTEXTS: Final = {
    defaultdict: (_write_defaultdict, _read_defaultdict), namedtuple: (_write_namedtuple, _read_namedtuple)
}  # fmt: skip
for _kind, _name in NAMES.items():
    SUPPORTED_SERIALIZED_TYPES[_kind] = _SerializeNodeDef((_kind, _name, *_CONTEXTS.get(_kind, (None, None))))
    SERIALIZED_TYPE_TO_PYTHON_TYPE[_name] = _kind


def _treespec_to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    found = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if found is None or found.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise Unsupported(f"{spec.type} has no name to write: register it with a serialized_type_name")
    write = found.to_dumpable_context
    try:
        context = json.dumps(spec.context, cls=EnumEncoder) if write is None else write(spec.context)
    except TypeError as error:
        raise ArgumentTypeError(f"the context of {spec.type} is not JSON: register to_dumpable_context") from error
    children = [_treespec_to_json(child) for child in spec.children_specs]
    return {"type": found.serialized_type_name, "context": context, "children_spec": children}


def _json_to_treespec(written: Any) -> TreeSpec:
    name = written["type"]
    if name is None:
        return LEAF
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise Unsupported(f"no container is registered as {name!r:.80}")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    read = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    given = written["context"]
    context = json.loads(given, object_hook=enum_object_hook) if read is None else read(given)
    return TreeSpec(kind, context, [_json_to_treespec(child) for child in written["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON, which PyTorch reads as well.

    Raises:
        ArgumentTypeError: for something that is no structure, or has a context that is not JSON.
        ArgumentValueError: for another protocol than 1.
        Unsupported: for classes that were registered without a name.
    """
    if not isinstance(treespec, TreeSpec):
        raise ArgumentTypeError(f"treespec is a TreeSpec, not {type(treespec).__name__}")
    chosen = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if chosen != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ArgumentValueError(f"protocol {protocol} is unknown: there is {DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL}")
    return json.dumps((chosen, _treespec_to_json(treespec)), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that :func:`treespec_dumps` has written, here or in PyTorch. Nothing is imported for it.

    Raises:
        ArgumentValueError: for another protocol than 1.
        Unsupported: for classes that are not registered.
    """
    protocol, written = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ArgumentValueError(f"protocol {protocol} is unknown: there is {DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL}")
    return _json_to_treespec(written)


pytree_to_str, str_to_pytree = treespec_dumps, treespec_loads


class _Star(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as Python writes such a container, with a star for each leaf."""
    return repr(tree_unflatten([_Star("*")] * treespec.num_leaves, treespec))
