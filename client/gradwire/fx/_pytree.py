"""Nested arguments of graphs, taken apart by a known structure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradwire_protocol.errors import ArgumentError

from .._core.context.pytree import TreeSpec, tree_unflatten


def tree_flatten_spec(pytree: Any, spec: TreeSpec, exact_structural_match: bool = False) -> list[Any]:
    """The leaves of nested containers, of which those of ``spec`` are taken apart.

    Raises:
        ArgumentError: where they have another structure.
    """
    return list(_leaves(pytree, tree_unflatten(list(range(spec.num_leaves)), spec), exact_structural_match))


def _leaves(given: Any, form: Any, exact: bool) -> Iterator[Any]:
    """The leaves of a container, by a container of the same structure with numbers in it."""
    if isinstance(form, int):
        yield given
    elif isinstance(form, dict):
        if not isinstance(given, dict) or form.keys() - given.keys() or (exact and given.keys() - form.keys()):
            raise ArgumentError(f"the argument has to be a dict with the keys {list(form)}, not {given!r:.80}")
        for key, inner in form.items():
            yield from _leaves(given[key], inner, exact)
    else:
        items = list(given)
        if len(items) < len(form) or (exact and len(items) != len(form)):
            raise ArgumentError(f"the argument has {len(items)} items, and was traced with {len(form)}")
        for item, inner in zip(items, form, strict=False):
            yield from _leaves(item, inner, exact)


__all__ = ["tree_flatten_spec"]
