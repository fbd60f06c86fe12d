"""``torch.nn.parallel.comm``: tensors copied to devices, cut, joined and added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..._core.context.size import device as _device
from ..._core.dispatch.dispatch import call
from ..._core.tensor.tensor import Tensor

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _place(where: Any) -> Any:
    """A device; a number is that of a GPU, -1 the CPU."""
    if isinstance(where, int):
        return _device("cpu") if where < 0 else _device("cuda", where)
    return _device(where)


def broadcast(tensor: Tensor, devices: Sequence[Any] | None = None, *, out: Any = None) -> tuple[Tensor, ...]:
    """A copy on each device."""
    if (devices is None) == (out is None):
        raise ArgumentError("broadcast: devices or out says where copies go, and only one of them")
    if out is not None:
        return tuple(each.copy_(tensor) for each in out)
    return tuple(tensor.to(_place(where)) for where in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> list[tuple[Tensor, ...]]:
    """Copies of several tensors on each device."""
    return [tuple(tensor.to(_place(where)) for tensor in tensors) for where in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of one shape, on a device.

    Raises:
        ArgumentValueError: for tensors of different shapes.
    """
    where = inputs[0].device if destination is None else _place(destination)
    total = inputs[0].to(where)
    for each in inputs[1:]:
        if each.shape != total.shape:
            raise ArgumentValueError(f"reduce_add: shapes differ, {list(total.shape)} and {list(each.shape)}")
        total = total + each.to(where)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """:func:`reduce_add` of the first tensors of all lists, of the second ones, and so on."""
    return tuple(reduce_add(column, destination) for column in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor, devices: Sequence[Any] | None = None, chunk_sizes: Sequence[int] | None = None, dim: int = 0,
    streams: Any = None, *, out: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A part of the tensor on each device: parts of equal size, or of these sizes."""
    if out is not None:
        parts = call("split", tensor, tuple(each.shape[dim] for each in out), dim)
        return tuple(each.copy_(part) for each, part in zip(out, parts, strict=True))
    if not devices:
        raise ArgumentError("scatter: devices says where parts go")
    if chunk_sizes is None:
        parts = call("chunk", tensor, len(devices), dim)
    else:
        parts = call("split", tensor, tuple(chunk_sizes), dim)
    return tuple(part.to(_place(where)) for part, where in zip(parts, devices, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Tensors of several devices, joined on one."""
    where = out.device if out is not None else _place(0 if destination is None else destination)
    rows = [call("unsqueeze", each, 0) if each.ndim == 0 else each for each in tensors]
    found: Tensor = call("cat", [each.to(where) for each in rows], dim)
    return found if out is None else out.copy_(found)
