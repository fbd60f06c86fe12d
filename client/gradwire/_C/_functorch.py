"""``torch._C._functorch``: what libraries ask about tensors inside of ``vmap``."""

from __future__ import annotations

from typing import Any

from .._core.composed.vmap import _add_batch_dim as _add
from .._core.context.modes import MODES
from .._core.dispatch.mapped_tensors import unbatch
from .._core.surface import stand_ins
from .._core.tensor.tensor import Tensor


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor has another value for each sample of a ``vmap`` that is running."""
    return isinstance(tensor, Tensor) and any(m.level in (tensor._levels or ()) for m in MODES.maps)


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether a tensor belongs to a transform that is running."""
    return is_batchedtensor(tensor)


def _add_batch_dim(tensor: Any, in_dim: int, level: int) -> Any:
    """A tensor with one dimension mapped over by the ``vmap`` that runs at a level."""
    return _add(tensor, in_dim, level)


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """A tensor with the dimension that is mapped at a level in its place again."""
    return unbatch(tensor, level, out_dim, batch_size)


stand_ins.fill(
    __name__,
    ("_vmap_decrement_nesting", "_vmap_increment_nesting", "get_unwrapped",
     "get_interpreter_stack", "maybe_get_bdim", "maybe_get_level", "peek_interpreter_stack"),
    "torch.vmap keeps mapped tensors in the client, without wrappers around them",
)  # fmt: skip


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Never: that is PyTorch's former ``vmap``."""
    return False


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Never: a transform of gradients wraps no tensors here."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """Never: nothing is made functional."""
    return False
