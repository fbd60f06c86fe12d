"""Proxies for tensors, for code below the class of proxies."""

from __future__ import annotations

from typing import Any, Final, Protocol
from weakref import ref

from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Meta


class TensorBase:
    """The class of proxies as code below ``gradwire.Tensor`` knows it, which tells them from other values by it."""

    __slots__ = ()

    _inference: bool  # whether it was made in inference mode


class Handle(Protocol):
    """A proxy for a tensor, as code below ``gradwire.Tensor`` sees it; nodes are above this, too."""

    _id: int
    _form: Meta
    _node: Any
    _slot: int
    _session: Any
    _base_tensor: Any
    _versions: list[Any] | None
    _requires: bool
    _accumulator: ref[Any] | None
    _seen: int
    _creation: int
    _path: Any
    _inference: bool
    _memory: list[Any] | None
    _origin: Any
    _retains: bool
    _renewed: tuple[int, list[Any]] | None
    _duals: Any
    _levels: tuple[int, ...]
    _part: Any

    @property
    def dtype(self) -> DType:
        """Of its elements."""

    @property
    def is_leaf(self) -> bool:
        """Whether no node made it."""

    @property
    def _version(self) -> int:
        """How often its memory was written to."""

    @property
    def requires_grad(self) -> bool:
        """Whether gradients for it are computed."""

    def _grad_node(self) -> Any:
        """The node that made it, with its history anew where its base was written to."""

    def _kept_cell(self) -> list[Any]:
        """The count of writes to its memory, for whoever saves it."""

    def _tell(self, op: str, *args: Any, results: int = 0) -> int:
        """Record a control op; the number of its first result."""


_class: Final[list[Any]] = []
"""The class of proxies. It stands above what needs it here, and registers itself."""


def register_class(cls: Any) -> None:
    """Have proxies made as instances of this class."""
    _class[:] = [cls]


def make(*args: Any) -> Handle:
    """A new proxy: see ``Tensor._make``."""
    return _class[0]._make(*args)
