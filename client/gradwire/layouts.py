"""``torch.layout`` and ``torch.memory_format``: names of memory orders, which programs pass on."""

from __future__ import annotations

from typing import Final


class layout:
    """How a tensor's elements are held. Every tensor of gradwire is ``strided``; there are no sparse ones."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class memory_format:
    """The order in which a new tensor's elements lie. It is advice: results are row-major, or keep the order of their
    operands."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


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
