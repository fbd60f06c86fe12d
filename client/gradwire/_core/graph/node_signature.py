"""What the nodes of all calls of one signature have in common."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.meta import Meta
from gradwire_protocol.table import Op


class NodeSignature:
    """What a node shares with all others of the same kind of call.

    Attributes:
        name: PyTorch's name of the node, without a namespace.
        outs: what the operation returns.
        recipe: the :class:`.RecordedCall`; ``None`` where the program recorded none.
        op: what the server recorded, where the program recorded no call.
    """

    __slots__ = ("name", "op", "outs", "recipe")

    def __init__(self, name: str, outs: tuple[Meta, ...], recipe: Any = None, op: Op | None = None) -> None:
        self.name: str = name
        self.outs: tuple[Meta, ...] = outs
        self.recipe: Any = recipe
        self.op: Op | None = op
