"""Which memory a tensor shows, as the client knows it, and an address that stands for it.

Views share the cell of their version, so the cell is what tells one memory from another. Where a tensor shows memory
under a version of its own (``.data``), or another's since it was assigned (``x.data = y``), ``Tensor._memory`` is the
cell of that memory.
"""

from __future__ import annotations

import sys
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.errors import Unsupported
from gradwire_protocol.shapes import is_dense

if TYPE_CHECKING:
    from .tensor import Tensor

ITSELF: Final = ...
"""As ``Tensor._origin``: it shows its memory from the beginning, whatever its base says."""

FIRST: Final = 1 << 48
"""The first address: beyond those of the program's own memory, so that none of them is ever one of these."""
APART: Final = 512
UNKNOWN_BYTES: Final = 1 << 40


def memory_of(tensor: Tensor) -> list[Any]:
    """The object that is the identity of a tensor's memory: the same for all that show it."""
    found = tensor._memory
    return tensor._cell() if found is None else found


def origin_of(tensor: Tensor) -> Any:
    """The tensor whose memory another one shows a part of; ``None`` for one that shows its memory whole."""
    return tensor._base_tensor if tensor._origin is None else tensor._origin


def whole(tensor: Tensor) -> Tensor:
    """The tensor that shows from its beginning to its end the memory that another one shows a part of.

    Raises:
        Unsupported: when that tensor was given other memory since (``base.data = ...``).
    """
    found: Any = tensor
    while (origin := origin_of(found)) is not None and origin is not ITSELF:
        found = origin
    if found is not tensor and memory_of(found) is not memory_of(tensor):
        raise Unsupported("the tensor that this one is a view of shows other memory now: its old memory's size is lost")
    shown: Tensor = found
    return shown


def span(tensor: Tensor) -> int:
    """How many elements lie between its first and its last one, with both."""
    described = tensor._known_meta()
    if not described.numel:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(described.shape, described.stride, strict=True))


def begins_its_memory(tensor: Tensor) -> bool:
    """Whether it is known without asking the server that the tensor begins where its memory does."""
    origin = origin_of(tensor)
    if origin is None or origin is ITSELF:
        return True
    described = tensor._known_meta()
    try:
        size = span(whole(tensor)) * whole(tensor).itemsize
    except Unsupported:
        return False
    # What leaves no gaps and has as many bytes can only begin there.
    return prod(described.shape) * tensor.itemsize == size and is_dense(described.shape, described.stride)


class _Addresses:
    """Addresses of memory that somebody asked for. No address is given twice in the life of a process."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[Any], int]] = {}
        self._next = FIRST
        self._sweep_at = 1024
        self._lock = Lock()

    def of(self, memory: list[Any], nbytes: int) -> int:
        """The address of memory of so many bytes."""
        with self._lock:
            known = self._known.get(id(memory))
            if known is not None:
                return known[1]
            if len(self._known) >= self._sweep_at:
                self._sweep()
            address = self._next
            self._next += -(-max(nbytes, 1) // APART) * APART
            self._known[id(memory)] = memory, address
            return address

    def _sweep(self) -> None:
        """Forget memory that no tensor shows any more."""
        kept: dict[int, tuple[list[Any], int]] = {}
        while self._known:
            key, entry = self._known.popitem()
            if sys.getrefcount(entry[0]) > 2:  # the entry's own, and that of the call
                kept[key] = entry
        self._known = kept
        self._sweep_at = max(1024, 2 * len(kept))


_ADDRESSES: Final = _Addresses()


def address_of(tensor: Tensor) -> int:
    """The address of a tensor's memory: a number for comparisons, the memory itself is the server's. 0 for memory
    without bytes, and on the meta device."""
    if tensor._id < 0:
        return 0
    try:
        origin = whole(tensor)
        nbytes = span(origin) * origin.itemsize
    except Unsupported:
        nbytes = UNKNOWN_BYTES
    return _ADDRESSES.of(memory_of(tensor), nbytes) if nbytes else 0
