"""``torch.distributed.nn.functional``: collectives that gradients pass through, back to where values came from.

Each rank's result depends on the tensors of all ranks, so the gradients of all ranks' results add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError, Unsupported

from ..._core.backward.function import Function
from ..._core.dispatch.dispatch import call
from ..._core.tensor.tensor import Tensor
from ..collectives import checked, checked_list, run
from ..process_group import Group, ProcessGroup, member
from ..reductions import ReduceOp, name_of

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


class _Reduced(Function):
    """The reduction over all ranks; its derivative is one too."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, group: ProcessGroup, op: str) -> Tensor:
        ctx.group, ctx.op = group, op
        found: Tensor = values.clone()
        run("all_reduce_", group, found, op)
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Reduced.apply(gradient, ctx.group, ctx.op), None, None


class _Gathered(Function):
    """The tensors of all ranks, stacked."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        found: Tensor = run("all_gather", group, values, group.size())
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Reduced.apply(gradient, ctx.group, "sum")[ctx.group.rank()], None


def _in(group: Group, what: str) -> ProcessGroup:
    """The group.

    Raises:
        ArgumentError: on a rank that is not in it.
    """
    found = member(group, what)
    if found is None:
        raise ArgumentError(f"{what}: this rank is not in the group, and gradients cannot pass")
    return found


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None) -> Tensor:
    """The reduction of the tensors of all ranks."""
    chosen = _in(group, "all_reduce")
    checked(tensor, "tensor", "all_reduce")
    if chosen.size() == 1:
        return tensor.clone()
    return _Reduced.apply(tensor, chosen, name_of(op))


def all_gather(tensor: Tensor, group: Group = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks."""
    chosen = _in(group, "all_gather")
    checked(tensor, "tensor", "all_gather")
    if chosen.size() == 1:
        return (tensor.clone(),)
    return tuple(call("unbind", _Gathered.apply(tensor, chosen), 0))


def broadcast(tensor: Tensor, src: int, group: Group = None) -> Tensor:
    """The tensor of rank ``src``."""
    chosen = _in(group, "broadcast")
    at = chosen.rank_of(src, None, "src")
    checked(tensor, "tensor", "broadcast")
    if chosen.size() == 1:
        return tensor.clone()
    found: Tensor = _Gathered.apply(tensor, chosen)[at]
    return found


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Group = None
) -> Tensor:
    """The reduction of those tensors of all ranks that are meant for this rank."""
    chosen = _in(group, "reduce_scatter")
    listed = checked_list(input_list, "input_list", "reduce_scatter", chosen)
    if chosen.size() == 1:
        return listed[0].clone()
    found: Tensor = _Reduced.apply(call("stack", listed, 0), chosen, name_of(op))[chosen.rank()]
    return found


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Group = None) -> Tensor:
    """The reduction of the tensors of all ranks. PyTorch has it on rank ``dst`` only; here all ranks have it."""
    _in(group, "reduce").rank_of(dst, None, "dst")
    return all_reduce(tensor, op, group)


def _alone(group: Group, what: str) -> None:
    if _in(group, what).size() > 1:
        raise Unsupported(f"torch.distributed.nn.{what} is for one rank: all_gather and all_reduce are for several")


def gather(tensor: Tensor, dst: int = 0, group: Group = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank ``dst``; with one rank only.

    Raises:
        Unsupported: for several ranks.
    """
    _alone(group, "gather")
    return (tensor.clone(),)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group = None) -> Tensor:
    """One of the tensors of rank ``src``; with one rank only.

    Raises:
        Unsupported: for several ranks.
    """
    _alone(group, "scatter")
    return tensors[0].clone()


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group = None
) -> tuple[Tensor, ...]:
    """The tensors that all ranks have for this rank; with one rank only.

    Raises:
        Unsupported: for several ranks.
    """
    _alone(group, "all_to_all")
    return tuple(tensor.clone() for tensor in input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Group = None
) -> Tensor:
    """The rows that all ranks have for this rank; with one rank only.

    Raises:
        Unsupported: for several ranks.
    """
    _alone(group, "all_to_all_single")
    return input.clone()
