"""``torch.layout`` and ``torch.memory_format``: names of memory orders, which programs pass on."""

from __future__ import annotations

from typing import Final

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, Unsupported
from gradwire_protocol.meta import Meta
from gradwire_protocol.shapes import channels_last_stride


class layout:
    """How a tensor's elements are held. Every tensor of gradwire is ``strided``; there are no sparse ones."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __reduce__(self) -> str:
        return self.name  # copies are the same object

    def __repr__(self) -> str:
        return f"torch.{self.name}"


def check_layout(name: str, order: layout | None) -> None:
    """Check that a new tensor may have a layout.

    Raises:
        ArgumentTypeError: for what is no layout.
        Unsupported: for a sparse one.
    """
    if order is None or order is strided:
        return
    if not isinstance(order, layout):
        raise ArgumentTypeError(f"{name}: layout is one of torch's layouts, not {order!r:.60}")
    raise Unsupported(f"{name}: there are no {order!r} tensors, only strided ones")


class memory_format:
    """The order in which a tensor's elements lie in memory, which its strides tell."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


def check_order(order: memory_format | None, ndim: int) -> None:
    """Check that a memory order goes with a number of dimensions.

    Raises:
        ArgumentTypeError: for what is no memory order.
        ArgumentError: for one that is for another number.
    """
    if order is not None and not isinstance(order, memory_format):
        raise ArgumentTypeError(f"memory_format is one of torch's memory formats, not {order!r:.60}")
    needed = {"channels_last": 4, "channels_last_3d": 5}.get(order.name, ndim) if order is not None else ndim
    if order is not None and ndim != needed:
        raise ArgumentError(f"memory_format={order!r} is for {needed} dimensions, not for {ndim}")


def asked_order(order: memory_format | None, ndim: int, mapped: bool = False) -> dict[str, bool]:
    """A memory order as the arguments of the ops that lay out new tensors; none where the order is to be kept.

    Raises:
        ArgumentTypeError, ArgumentError: as :func:`check_order`; and for the tensor of a ``vmap``, whose samples lie
            one after the other whatever the order.
    """
    if order is None or order is preserve_format:
        return {}
    check_order(order, ndim)
    if order is contiguous_format:
        return {"row_major": True}
    if mapped:
        raise ArgumentError(f"memory_format={order!r} does not work inside vmap")
    return {"channels_last": True}


def suggested_order(described: Meta) -> memory_format:
    """The memory order that a tensor's strides suggest: where extents of one leave it open, PyTorch's choice."""
    if channels_last_stride(described, described.shape) is None:
        return contiguous_format
    return channels_last if len(described.shape) == 4 else channels_last_3d


def lies_in(described: Meta, order: memory_format, mapped: bool = False) -> bool:
    """Whether a tensor's elements lie in a memory order; false for one that is for another number of dimensions.

    Raises:
        ArgumentTypeError: for what is no memory order.
        ArgumentError: for channels-last orders of a ``vmap``'s tensors.
    """
    if not isinstance(order, memory_format):
        raise ArgumentTypeError(f"is_contiguous: memory_format is one of torch's, not {order!r:.60}")
    if order is contiguous_format or order is preserve_format:
        return described.contiguous
    if mapped:
        raise ArgumentError(f"is_contiguous: memory_format={order!r} does not work inside vmap")
    ndim = 4 if order is channels_last else 5
    if len(described.shape) != ndim:
        return False
    inward = (1, *range(ndim - 1, 1, -1), 0)  # channels are next to each other, batches farthest apart
    expected = 1
    for dim in inward:
        if described.shape[dim] != 1:
            if described.stride[dim] != expected:
                return False
            expected *= described.shape[dim]
    return True


strided: Final = layout("strided")
sparse_coo: Final = layout("sparse_coo")
sparse_csr: Final = layout("sparse_csr")
sparse_csc: Final = layout("sparse_csc")
sparse_bsr: Final = layout("sparse_bsr")
sparse_bsc: Final = layout("sparse_bsc")
contiguous_format: Final = memory_format("contiguous_format")
preserve_format: Final = memory_format("preserve_format")
channels_last: Final = memory_format("channels_last")
channels_last_3d: Final = memory_format("channels_last_3d")
