"""``torch.layout`` and ``torch.memory_format``: names of memory orders, which programs pass on."""

from __future__ import annotations

from typing import Final

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, Unsupported
from gradwire_protocol.meta import Meta


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
    """The order in which a new tensor's elements lie. It is advice: results are row-major, or keep the order of their
    operands."""

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
        ArgumentError: for one that is for another number.
    """
    needed = {"channels_last": 4, "channels_last_3d": 5}.get(order.name, ndim) if order is not None else ndim
    if order is not None and ndim != needed:
        raise ArgumentError(f"memory_format={order!r} is for {needed} dimensions, not for {ndim}")


def lies_in(described: Meta, order: memory_format) -> bool:
    """Whether a tensor's elements lie in a memory order; false for one that is for another number of dimensions.

    Raises:
        ArgumentError: for ``preserve_format``, which is no order.
    """
    if order is preserve_format:
        raise ArgumentError("is_contiguous: preserve_format keeps an order, it is none")
    if order is contiguous_format:
        return described.contiguous
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
