"""Nested arguments of graphs, taken apart by a known structure."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError

from .._core.context.pytree import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_unflatten


def tree_flatten_spec(pytree: Any, spec: TreeSpec, exact_structural_match: bool = False) -> list[Any]:
    """The leaves of nested containers, of which those of ``spec`` are taken apart.

    Raises:
        ArgumentError: where they have another structure.
    """
    if spec.is_leaf:
        return [pytree]
    if spec.keys:
        if not isinstance(pytree, dict) or set(spec.keys) - pytree.keys():
            raise ArgumentError(f"the argument has to be a dict with the keys {list(spec.keys)}, not {pytree!r:.80}")
        items = [pytree[key] for key in spec.keys]
    else:
        items = list(pytree)
        if len(items) < len(spec.children) or (exact_structural_match and len(items) != len(spec.children)):
            raise ArgumentError(f"the argument has {len(items)} items, and was traced with {len(spec.children)}")
    return [
        leaf
        for item, child in zip(items, spec.children, strict=False)
        for leaf in tree_flatten_spec(item, child, exact_structural_match)
    ]


__all__ = ["TreeSpec", "tree_flatten", "tree_flatten_spec", "tree_leaves", "tree_map", "tree_unflatten"]
