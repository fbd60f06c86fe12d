"""Nested containers of tensors, taken apart and put together: tuples, lists, dicts, and classes that are registered.

A container's class is found in :data:`SUPPORTED_NODES`, which says how its items are got and how it is made again.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

IsLeaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How containers of one class are taken apart and put together.

    Attributes:
        type: the class; ``collections.namedtuple`` stands for all named tuples.
        flatten_fn: gives the items, and a context that the other function needs.
        unflatten_fn: makes a container of items and context.
        flatten_with_keys_fn: like the first, with a key beside each item.
    """

    type: Any
    flatten_fn: Callable[[Any], tuple[Sequence[Any], Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None


SUPPORTED_NODES: Final[dict[Any, NodeDef]] = {}
"""By class: what is a container. Everything else is a leaf, ``None`` included."""
_DICTS: Final = frozenset({dict, OrderedDict, defaultdict})
_BUILT_IN: Final = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
_PLAIN_LEAVES: Final = frozenset({int, float, bool, str, bytes, type(None)})


def is_namedtuple_class(cls: type) -> bool:
    """Whether it is the class of a named tuple."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields := getattr(cls, "_fields", None), tuple)
        and all(type(field) is str for field in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def node_type_of(tree: Any) -> Any:
    """The class under which a value's kind is registered: ``collections.namedtuple`` for all named tuples."""
    kind = type(tree)
    return namedtuple if kind is not tuple and isinstance(tree, tuple) and is_namedtuple_class(kind) else kind


def _definition(tree: Any, is_leaf: IsLeaf) -> NodeDef | None:
    """How to take a value apart; ``None`` for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    kind = type(tree)
    if kind in _PLAIN_LEAVES and kind not in SUPPORTED_NODES:
        return None
    return SUPPORTED_NODES.get(node_type_of(tree))


class TreeSpec:
    """The structure of a nested container without its leaves.

    Attributes:
        type: the container's class; ``None`` for a leaf, ``collections.namedtuple`` for any named tuple.
        num_nodes: how many containers and leaves there are.
        num_leaves: how many leaves are below.
        num_children: how many items the outermost container has.
    """

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        if type is None and (context is not None or children_specs):
            raise AssertionError("a leaf has neither context nor children")
        self.type = type
        self._context = context
        self._children = children_specs
        self.num_children: int = len(children_specs)
        self.num_leaves: int = 1 if type is None else sum([child.num_leaves for child in children_specs])
        self.num_nodes: int = 1 + sum([child.num_nodes for child in children_specs])

    @property
    def context(self) -> Any:
        """What ``unflatten_fn`` needs beside the items: keys of a dictionary, say."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of its items."""
        return self._children

    def is_leaf(self) -> bool:
        """Whether it is a single leaf."""
        return self.num_nodes == 1 and self.num_leaves == 1

    def children(self) -> list[TreeSpec]:
        """The structures of its items, as a new list."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The structure of one item."""
        return self._children[index]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and bool(self._context == other._context)
            and self.num_leaves == other.num_leaves
            and self._children == other._children
        )

    def __hash__(self) -> int:
        kind = self.type
        context: Any = None  # a program's own may have no hash
        if kind is defaultdict:
            context = (self._context[0], tuple(self._context[1]))
        elif kind is dict or kind is OrderedDict:
            context = tuple(self._context)
        elif kind in _BUILT_IN:
            context = self._context
        return hash((kind, context, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        indent += 2
        inner = (",\n" + " " * indent).join([child.__repr__(indent) for child in self._children])
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The container with these leaves.

        Raises:
            ArgumentValueError: for another number of leaves than the structure has.
        """
        listed = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(listed) != self.num_leaves:
            raise ArgumentValueError(f"{len(listed)} leaves do not fill a structure of {self.num_leaves}: {self!r}")
        return _unflatten(iter(listed), self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What another tree has at the places of this structure's leaves.

        Raises:
            ArgumentValueError: where it has another container, or one with other keys or another number of items.
        """
        found: list[Any] = []
        _flatten_up_to(self, tree, found)
        return found


LEAF: Final = TreeSpec(None, None, [])


def _unflatten(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    kind = spec.type
    if kind is None:
        return next(leaves)
    items = [_unflatten(leaves, child) for child in spec._children]
    return SUPPORTED_NODES[kind].unflatten_fn(items, spec._context)


def _flatten_up_to(spec: TreeSpec, tree: Any, found: list[Any]) -> None:
    if spec.type is None:
        found.append(tree)
        return
    for item, child in zip(_items_up_to(spec, tree), spec._children, strict=True):
        _flatten_up_to(child, item, found)


def _items_up_to(spec: TreeSpec, tree: Any) -> Sequence[Any]:
    """The items of a container that fits the outermost one of ``spec``, in its order."""
    kind = node_type_of(tree)
    if spec.type in _DICTS and kind in _DICTS:  # one may stand for another, and the order of keys does not matter
        keys = spec._context[1] if spec.type is defaultdict else spec._context
        if set(tree) != set(keys):
            missing, extra = [k for k in keys if k not in tree], [k for k in tree if k not in set(keys)]
            raise ArgumentValueError(f"the keys of two dictionaries differ: missing are {missing}, beyond are {extra}")
        return [tree[key] for key in keys]
    if kind != spec.type:
        raise ArgumentValueError(f"two trees differ: a {spec.type!r} in the first is a {kind!r} in the other")
    items, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(items) != spec.num_children:
        raise ArgumentValueError(
            f"two trees differ: a {kind!r} has {spec.num_children} items in the first, {len(items)} in the other"
        )
    if kind is not deque and context != spec._context:
        raise ArgumentValueError(f"two trees differ: a {kind!r} of {spec._context!r} is one of {context!r}")
    return items


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure that :func:`tree_unflatten` puts them back into.

    ``is_leaf`` marks containers that are taken as leaves.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    found = _definition(tree, is_leaf)
    if found is None:
        leaves.append(tree)
        return LEAF
    items, context = found.flatten_fn(tree)
    return TreeSpec(found.type, context, [_flatten(item, leaves, is_leaf) for item in items])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Put leaves into a structure. The two arguments may change places.

    Raises:
        ArgumentValueError: when their number is not that of the structure.
        ArgumentTypeError: for something that is no structure.
    """
    if not isinstance(treespec, TreeSpec):
        if not isinstance(leaves, TreeSpec):
            raise ArgumentTypeError(f"treespec is a TreeSpec, not {type(treespec).__name__}")
        leaves, treespec = treespec, leaves
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves in order, one by one."""
    found = _definition(tree, is_leaf)
    if found is None:
        yield tree
        return
    for item in found.flatten_fn(tree)[0]:
        yield from tree_iter(item, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves in order."""
    return list(tree_iter(tree, is_leaf))


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the function's values at each leaf; further trees, which may go deeper, give further arguments.

    Raises:
        ArgumentValueError: when the structures differ.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    if not rests:
        return _unflatten(iter([func(leaf) for leaf in leaves]), spec)
    return spec.unflatten(list(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests])))


def broadcast_prefix(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """One value per leaf of ``treespec``, from a tree that may stop early: a value stands for all leaves below it.

    ``None`` where the tree does not fit the structure. ``is_leaf`` marks containers that are values themselves.
    """
    spread: list[Any] = []
    try:
        _spread(tree, treespec, is_leaf, spread)
    except ArgumentValueError:
        return None
    return spread


def _spread(prefix: Any, spec: TreeSpec, is_leaf: IsLeaf, out: list[Any]) -> None:
    found = _definition(prefix, is_leaf)
    if found is None:
        out.extend([prefix] * spec.num_leaves)
        return
    own = _flatten_once(prefix, found)
    full = _unflatten_once(spec)
    for item, child in zip(own[1], _items_up_to(own[0], full), strict=True):
        _spread(item, child, is_leaf, out)


def _flatten_once(tree: Any, found: NodeDef) -> tuple[TreeSpec, Sequence[Any]]:
    items, context = found.flatten_fn(tree)
    return TreeSpec(found.type, context, [LEAF] * len(items)), items


def _unflatten_once(spec: TreeSpec) -> Any:
    """The outermost container of a structure, with the structures of its items for items."""
    return spec if spec.type is None else SUPPORTED_NODES[spec.type].unflatten_fn(spec._children, spec._context)


def _list_flatten(d: Any) -> tuple[Any, Any]:
    return d, None


def _tuple_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


def _dict_flatten(d: Mapping[Any, Any]) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _defaultdict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), [d.default_factory, list(d)]


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), type(d)


def _deque_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), d.maxlen


def _list_unflatten(values: Any, context: Any) -> Any:
    return values if type(values) is list else list(values)


def _dict_unflatten(values: Any, context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


NAMES: Final[dict[Any, str]] = {}
"""By class of a container: its name in a structure that is written down."""


def _add(kind: Any, name: str, flatten: Any, unflatten: Any, keyed: Callable[[Any, Any], list[Any]]) -> None:
    def flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(d)
        return list(zip(keyed(values, context), values, strict=True)), context

    SUPPORTED_NODES[kind] = NodeDef(kind, flatten, unflatten, flatten_with_keys)
    NAMES[kind] = name


class _Key:
    """Where a container has an item."""

    __slots__ = ("_at",)

    def __init__(self, at: Any) -> None:
        self._at = at

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(self._at == other._at)

    def __hash__(self) -> int:
        return hash((type(self), self._at))

    def __str__(self) -> str:
        return f"[{self._at!r}]"

    def get(self, parent: Any) -> Any:
        """The item of a container that is at this place."""
        return parent[self._at]


class SequenceKey(_Key):
    """The place of an item in a sequence."""

    __slots__ = ()

    def __init__(self, idx: int) -> None:
        super().__init__(idx)

    @property
    def idx(self) -> int:
        """The index."""
        return int(self._at)

    def __repr__(self) -> str:
        return f"SequenceKey(idx={self._at!r})"


class MappingKey(_Key):
    """The key of an item in a dictionary."""

    __slots__ = ()

    def __init__(self, key: Any) -> None:
        super().__init__(key)

    @property
    def key(self) -> Any:
        """The key."""
        return self._at

    def __repr__(self) -> str:
        return f"MappingKey(key={self._at!r})"


class GetAttrKey(_Key):
    """The name of an attribute that has an item."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)

    @property
    def name(self) -> str:
        """The attribute's name."""
        return str(self._at)

    def __str__(self) -> str:
        return f".{self._at}"

    def __repr__(self) -> str:
        return f"GetAttrKey(name={self._at!r})"

    def get(self, parent: Any) -> Any:
        """The attribute of an object."""
        return getattr(parent, self._at)


def _by_index(values: Any, context: Any) -> list[Any]:
    return [SequenceKey(i) for i in range(len(values))]


def _by_key(values: Any, context: Any) -> list[Any]:
    return [MappingKey(key) for key in context]


_add(tuple, "builtins.tuple", _tuple_flatten, lambda values, context: tuple(values), _by_index)
_add(list, "builtins.list", _list_flatten, _list_unflatten, _by_index)
_add(dict, "builtins.dict", _dict_flatten, _dict_unflatten, _by_key)
_add(
    namedtuple, "collections.namedtuple", _namedtuple_flatten, lambda values, context: context(*values),
    lambda values, context: [GetAttrKey(field) for field in context._fields],
)  # fmt: skip
_add(
    OrderedDict, "collections.OrderedDict", _dict_flatten,
    lambda values, context: OrderedDict(zip(context, values, strict=True)), _by_key,
)  # fmt: skip
_add(
    defaultdict, "collections.defaultdict", _defaultdict_flatten,
    lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    lambda values, context: [MappingKey(key) for key in context[1]],
)  # fmt: skip
_add(deque, "collections.deque", _deque_flatten, lambda values, context: deque(values, maxlen=context), _by_index)
