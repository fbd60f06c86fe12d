"""Nested containers of tensors, taken apart and put together: tuples, lists, dicts, named tuples, ordered dicts."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError

Keys = tuple[Any, ...]


class TreeSpec:
    """The structure of a nested container without its leaves.

    Attributes:
        kind: the container's type; ``None`` for a leaf.
        keys: the keys of a dict, in its own order; the default factory of a ``defaultdict`` is in ``extra``.
        children: the structures of its items.
        num_leaves: how many leaves are below.
    """

    __slots__ = ("children", "extra", "keys", "kind", "num_leaves")

    def __init__(
        self, kind: type | None = None, children: tuple[TreeSpec, ...] = (), keys: Keys = (), extra: Any = None
    ) -> None:
        self.kind = kind
        self.children = children
        self.keys = keys
        self.extra = extra
        self.num_leaves: int = 1 if kind is None else sum(c.num_leaves for c in children)

    @property
    def is_leaf(self) -> bool:
        """Whether it is a single leaf."""
        return self.kind is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec) or self.kind is not other.kind or self.extra != other.extra:
            return False
        if self.kind is dict or self.kind is defaultdict:  # the order of keys does not tell dicts apart
            if set(self.keys) != set(other.keys):
                return False
            there = dict(zip(other.keys, other.children, strict=True))
            return all(there[k] == c for k, c in zip(self.keys, self.children, strict=True))
        return self.keys == other.keys and self.children == other.children

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inner = [repr(c) for c in self.children]
        if self.keys:
            inner = [f"{k!r}: {c}" for k, c in zip(self.keys, inner, strict=True)]
        return f"{self.kind.__name__}({', '.join(inner)})"


LEAF = TreeSpec()


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def _parts(value: Any) -> tuple[type, Sequence[Any], Keys, Any] | None:
    """The container's type, items, keys and extra; ``None`` for a leaf."""
    kind = type(value)
    if kind is tuple or kind is list or _is_named_tuple(value):
        return kind, value, (), None
    if kind is dict or kind is OrderedDict:
        return kind, list(value.values()), tuple(value), None
    if kind is defaultdict:
        return kind, list(value.values()), tuple(value), value.default_factory
    if kind is deque:
        return kind, list(value), (), value.maxlen
    return None


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure that :func:`tree_unflatten` puts them back into.

    Whatever is not a tuple, list, dict, ``OrderedDict``, ``defaultdict``, ``deque`` or named tuple is a leaf, ``None``
    included.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> TreeSpec:
    found = _parts(tree)
    if found is None:
        leaves.append(tree)
        return LEAF
    kind, items, keys, extra = found
    return TreeSpec(kind, tuple([_flatten(item, leaves) for item in items]), keys, extra)


def tree_unflatten(leaves: Sequence[Any], spec: TreeSpec) -> Any:
    """Put leaves into a structure.

    Raises:
        ArgumentError: when their number is not that of the structure.
    """
    if len(leaves) != spec.num_leaves:
        raise ArgumentError(f"{len(leaves)} leaves do not fill a structure of {spec.num_leaves}: {spec!r}")
    return _unflatten(iter(leaves), spec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    kind = spec.kind
    if kind is None:
        return next(leaves)
    items = [_unflatten(leaves, child) for child in spec.children]
    if kind is list:
        return items
    if kind is dict or kind is OrderedDict:
        return kind(zip(spec.keys, items, strict=True))
    if kind is defaultdict:
        return defaultdict(spec.extra, zip(spec.keys, items, strict=True))
    if kind is deque:
        return deque(items, maxlen=spec.extra)
    return tuple(items) if kind is tuple else kind(*items)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree)[0]


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A tree of the function's values at each leaf; further trees of the same structure give further arguments.

    Raises:
        ArgumentError: when the structures differ.
    """
    leaves, spec = tree_flatten(tree)
    columns = [leaves]
    for other in others:
        more, structure = tree_flatten(other)
        if structure != spec:
            raise ArgumentError(f"the structures {spec!r} and {structure!r} differ")
        columns.append(more)
    return tree_unflatten([function(*row) for row in zip(*columns, strict=True)], spec)


def broadcast_prefix(prefix: Any, spec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None) -> list[Any] | None:
    """One value per leaf of ``spec``, from a tree that may stop early: a value stands for all leaves below it.

    ``None`` where the prefix does not fit the structure. ``is_leaf`` marks containers that are values themselves.
    """
    spread: list[Any] = []
    return spread if _spread(prefix, spec, is_leaf, spread) else None


def _spread(prefix: Any, spec: TreeSpec, is_leaf: Callable[[Any], bool] | None, out: list[Any]) -> bool:
    found = None if is_leaf is not None and is_leaf(prefix) else _parts(prefix)
    if found is None:
        out.extend([prefix] * spec.num_leaves)
        return True
    kind, items, keys, _ = found
    if spec.kind is None or kind is not spec.kind or len(items) != len(spec.children):
        return False
    if keys != spec.keys:
        if set(keys) != set(spec.keys):
            return False
        by_key = dict(zip(keys, items, strict=True))
        items = [by_key[k] for k in spec.keys]
    return all(_spread(item, child, is_leaf, out) for item, child in zip(items, spec.children, strict=True))
