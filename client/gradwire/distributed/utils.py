"""``torch.distributed.utils``: what libraries import of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.context.pytree import tree_map
from .._core.modules.module import Module
from .._core.tensor.tensor import Tensor
from .collectives import broadcast
from .process_group import ProcessGroup


def _apply_to_tensors(fn: Callable[[Tensor], Any], container: Any) -> Any:
    """A container with the function's value for each tensor."""
    return tree_map(lambda x: fn(x) if isinstance(x, Tensor) else x, container)


def _to_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_device: Any, use_side_stream_for_tensor_copies: bool
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Arguments on a device."""
    moved = _apply_to_tensors(lambda x: x.to(target_device), (inputs, kwargs or {}))
    return (moved[0],), (moved[1],)


def _sync_module_states(
    module: Module, process_group: ProcessGroup, broadcast_bucket_size: int, src: int,
    params_and_buffers_to_ignore: Sequence[str], broadcast_buffers: bool = True,
) -> None:  # fmt: skip
    """Give parameters and buffers the values of rank ``src``."""
    members = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    for name, tensor in members:
        if name not in params_and_buffers_to_ignore:
            broadcast(tensor.detach(), src, process_group)


def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """Check a condition.

    Raises:
        AssertionError: when it is false.
    """
    if not cond and raise_assertion_error:
        raise AssertionError(s)
