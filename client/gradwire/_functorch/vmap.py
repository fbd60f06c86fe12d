"""``torch._functorch.vmap``: the steps of ``vmap``. One that a library replaces in this module is used in its place."""

from __future__ import annotations

from typing import Any

from .._core.composed.vmap import (
    _add_batch_dim,
    _create_batched_inputs,
    _get_name,
    _maybe_remove_batch_dim,
    _process_batched_inputs,
    _unwrap_batched,
    vmap,
)
from .._core.context.pytree import TreeSpec, broadcast_prefix, tree_flatten, tree_unflatten
from .._core.tensor.tensor import Tensor

__all__ = [
    "Tensor", "_add_batch_dim", "_broadcast_to_and_flatten", "_create_batched_inputs", "_get_name",
    "_maybe_remove_batch_dim", "_process_batched_inputs", "_unwrap_batched", "tree_flatten", "tree_unflatten", "vmap",
]  # fmt: skip


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """The leaves of a tree, repeated as a structure asks for; None where it does not fit."""
    return broadcast_prefix(tree, treespec, is_leaf)
