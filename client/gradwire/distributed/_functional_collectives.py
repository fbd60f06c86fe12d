"""``torch.distributed._functional_collectives``: collectives that return new tensors. Nothing waits here, either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.surface.stand_ins import stand_ins as _stand_ins
from .._core.tensor.tensor import Tensor
from . import collectives
from .nn import functional as _differentiable
from .process_group import WORLD, ProcessGroup, default_group
from .reductions import ReduceOp


def _resolve(group: Any) -> ProcessGroup:
    """A group, or the one of a name."""
    if isinstance(group, str):
        return next((each for each in WORLD.groups if each.group_name == group), default_group())
    return group if isinstance(group, ProcessGroup) else default_group()


def _op(name: str) -> ReduceOp:
    return ReduceOp[name.upper()] if isinstance(name, str) else name


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor: what is recorded later is computed later."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The reduction of the tensors of all ranks."""
    return _differentiable.all_reduce(self, _op(reduceOp), _resolve(group))


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank ``src``."""
    return _differentiable.broadcast(self, src, _resolve(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all ranks, joined along a dimension."""
    found: Tensor = call("cat", list(_differentiable.all_gather(self, _resolve(group))), gather_dim)
    return found


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This rank's part, along a dimension, of the reduction of the tensors of all ranks."""
    chosen = _resolve(group)
    parts = list(call("chunk", self, chosen.size(), scatter_dim))
    return _differentiable.reduce_scatter(parts[0], parts, _op(reduceOp), chosen)


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:
    """:func:`all_reduce` of each tensor."""
    return [all_reduce(tensor, reduceOp, group) for tensor in self]


def all_gather_into_tensor_coalesced(self: Sequence[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """:func:`all_gather_tensor` of each tensor, along the first dimension."""
    return [all_gather_tensor(tensor, 0, group) for tensor in self]


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """The rows that all ranks have for this rank."""
    chosen = _resolve(group)
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    with no_grad():
        found: Tensor = self.new_empty((rows, *self.shape[1:]))
        collectives.all_to_all_single(found, self.contiguous(), output_split_sizes, input_split_sizes, chosen)
    return found


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """:func:`all_to_all_single` that gradients pass through; with one rank only."""
    return _differentiable.all_to_all_single(self, self, group=_resolve(group))


all_gather_single, all_gather_single_autograd = all_gather_tensor, all_gather_tensor
all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_single = reduce_scatter_tensor
globals().update(
    _stand_ins(__name__, "AsyncCollectiveTensor permute_tensor", "send and recv move tensors between ranks")
)
