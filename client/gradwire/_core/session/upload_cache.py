"""Data that is sent again and again, and need not be: the server keeps what was seen to repeat.

A program that goes over the same data every epoch uploads the same bytes each time. The second time that some bytes
come by, they are uploaded to a tensor of the session's own, which nobody writes to; what the program gets is a clone of
that, and from then on a clone is all that is recorded. So a journal, its replay and an image know nothing of it.

Bytes are recognised by a few of them, and then compared with a copy: that is ten times as fast as a hash of all, which
would take longer than to send them over loopback, and is never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

LEAST_BYTES: Final = 64 << 10
"""Less is sent faster than it is looked up."""

KEPT_BYTES: Final = 64 << 20
SHARE: Final = 16
"""The part of a session's memory that is kept at most."""

SIGHTS_KEPT: Final = 4096
SAMPLES: Final = 512

Key = tuple[Any, ...]


@dataclass(slots=True)
class CachedUpload:
    """Bytes that came by twice, and the tensor that holds them."""

    data: np.ndarray[Any, Any]
    tensor: Any


class UploadCache:
    """What of a session's uploads is kept on the server.

    Args:
        limit: bytes that are kept, there and, to compare, here; 0 for none.

    Attributes:
        skipped, skipped_bytes: uploads that were not sent.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.skipped = self.skipped_bytes = 0
        self._kept: OrderedDict[Key, CachedUpload] = OrderedDict()
        self._bytes = 0
        self._seen: OrderedDict[Key, int] = OrderedDict()  # by sample: how often it deceived

    def __len__(self) -> int:
        """How many tensors the server keeps for it."""
        return len(self._kept)

    def find(self, data: np.ndarray[Any, Any], about: Key, upload: Callable[[], Any]) -> Any:
        """A tensor that holds these bytes, or ``None`` where they are to be sent as any others.

        Args:
            data: contiguous.
            about: what besides bytes makes the tensor: dtype, shape and device.
            upload: makes a tensor that holds them.
        """
        if not LEAST_BYTES <= data.nbytes <= self.limit // 4:
            return None
        flat = data.reshape(-1).view(np.uint8)
        key = (*about, hash(flat[:: flat.size // SAMPLES].tobytes()))
        kept = self._kept.get(key)
        if kept is not None:
            if _equal(kept.data, flat):
                self._kept.move_to_end(key)
                self.skipped += 1
                self.skipped_bytes += flat.size
                return kept.tensor
            self._drop(key)
            self._see(key, self._seen.get(key, 0) + 1)
            return None
        deceived = self._seen.get(key)
        if deceived is None or deceived > 1:
            self._see(key, deceived or 0)
            return None
        self._kept[key] = CachedUpload(flat.copy(), upload())
        self._bytes += flat.size
        while self._bytes > self.limit:
            self._drop(next(iter(self._kept)))
        return self._kept[key].tensor

    def clear(self) -> None:
        """Keep nothing of what there is: something has failed, and it may be one of these."""
        self._kept.clear()
        self._bytes = 0

    def _see(self, key: Key, deceived: int) -> None:
        self._seen[key] = deceived
        self._seen.move_to_end(key)
        if len(self._seen) > SIGHTS_KEPT:
            self._seen.popitem(last=False)

    def _drop(self, key: Key) -> None:
        self._bytes -= self._kept.pop(key).data.size


def _equal(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether bytes are the same, by words as far as there are whole ones."""
    whole = one.size & ~7
    if other.ctypes.data % 8 or one.size != other.size:
        return bool(np.array_equal(one, other))
    same = np.array_equal(one[:whole].view(np.uint64), other[:whole].view(np.uint64))
    return bool(same and np.array_equal(one[whole:], other[whole:]))
