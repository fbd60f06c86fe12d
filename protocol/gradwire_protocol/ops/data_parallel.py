"""Collectives over many tensors at once, for training with the data shared out over ranks: what would take several
records a parameter takes one record for all."""

from __future__ import annotations

from ..errors import ArgumentError, ArgumentValueError, DTypeError
from ..meta import Inference, Meta, nothing
from ..shapes import common_device
from ..table import Ints, Tensor, op
from .collectives import check_group, check_rank, check_reduction


def _check_alike(name: str, tensors: list[Meta]) -> None:
    if not tensors:
        raise ArgumentError(f"{name} needs at least one tensor")
    first = tensors[0]
    for other in tensors[1:]:
        common_device(first, other)
        if other.dtype is not first.dtype:
            raise DTypeError(f"{name} takes tensors of one dtype, got {first.dtype.name} and {other.dtype.name}")


@op(collective=True, results=0, exposed=())
def average_gradients(params: list[Tensor], group: str, unused: Ints | None = None) -> Inference:
    """Replace the gradients of these tensors by their mean over the ranks of the group, as one collective.

    A tensor without a gradient counts as one with a gradient of zeros, and has the mean afterwards. With ``unused``,
    the positions of the tensors that this rank has not used, a tensor that no rank has used keeps what it has. All
    ranks give ``unused``, or none does."""
    check_group("average_gradients", group)
    _check_alike("average_gradients", params)
    check_reduction("average_gradients", "avg", params[0].dtype)
    for at in unused or ():
        if not 0 <= at < len(params):
            raise ArgumentValueError(f"average_gradients: unused names tensor {at} of {len(params)}")
    return nothing()


@op(collective=True, results=0, exposed=())
def broadcast_each(tensors: list[Tensor], group: str, src: int) -> Inference:
    """Write the values that these tensors have on rank ``src`` over those of all ranks, as one collective."""
    check_group("broadcast_each", group)
    check_rank("broadcast_each", "src", src)
    _check_alike("broadcast_each", tensors)
    return nothing()
