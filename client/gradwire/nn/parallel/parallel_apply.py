"""``torch.nn.parallel.parallel_apply``: several modules, each called with its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.context.pytree import tree_iter
from ..._core.modules.module import Module
from ..._core.tensor.tensor import Tensor

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in a container."""
    return next((leaf for leaf in tree_iter(obj) if isinstance(leaf, Tensor)), None)


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:  # fmt: skip
    """What each module gives for its arguments. They are recorded one after the other, which costs no waiting.

    Raises:
        AssertionError: for another number of arguments or devices than of modules.
    """
    named = [{} for _ in modules] if kwargs_tup is None else list(kwargs_tup)
    for name, given in (("inputs", inputs), ("kwargs_tup", named), ("devices", devices)):
        if given is not None and len(given) != len(modules):
            raise AssertionError(f"parallel_apply: {len(modules)} modules, and {len(given)} entries of {name}")
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **own)
        for module, given, own in zip(modules, inputs, named, strict=True)
    ]
