"""Incomplete uploads: chunks sent before the frame that uses them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np

from gradwire_protocol.errors import GradwireError, LimitExceeded, MalformedFrame

from ..runtime.memory import Limits

UPLOADS_KEPT: Final = 64


Key = tuple[int, int]


class Uploads(OrderedDict[Key, tuple[memoryview, int]]):
    """By client and number: the buffer, and how many bytes of it are filled.

    Attributes:
        refused: the errors of the last refused uploads. The frame that uses such an upload fails with this error. It is
            not part of a snapshot, because it depends on limits of the moment.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused: OrderedDict[Key, GradwireError] = OrderedDict()

    def refuse(self, key: Key, error: GradwireError) -> None:
        """Record that a chunk of this upload was refused."""
        if self.refused.setdefault(key, error) is error and len(self.refused) > UPLOADS_KEPT:
            self.refused.popitem(last=False)

    def forget(self, key: Key) -> bool:
        """Drop an upload; returns whether it existed."""
        self.refused.pop(key, None)
        return self.pop(key, None) is not None

    def take(self, key: Key) -> memoryview:
        """The bytes of a complete upload, which is removed; empty for an unknown upload.

        Raises:
            LimitExceeded, OutOfMemory: when its chunks were refused.
            MalformedFrame: when it is incomplete.
        """
        refusal = self.refused.pop(key, None)
        data, filled = self.pop(key, (memoryview(b""), 0))
        if filled == len(data) and (refusal is None or filled):
            return data
        if refusal is not None:
            raise type(refusal)(f"upload {key[1]}: {refusal.message}", **refusal.details)
        raise MalformedFrame(f"upload {key[1]} has {filled} of {len(data)} bytes")

    def add(self, limits: Limits, client: int, transfer: int, offset: int, total: int, data: memoryview) -> None:
        """Add a chunk. Chunks may be repeated, but must not leave gaps.

        Raises:
            LimitExceeded: when the upload exceeds the limit of a tensor; nothing is allocated then.
            MalformedFrame: when the chunk does not fit.
            MemoryError: when memory is exhausted.
        """
        if total < 0:
            raise MalformedFrame(f"invalid upload size: {total:,} bytes")
        key = (client, transfer)
        refusal = self.refused.get(key)
        if refusal is not None and offset > self.get(key, (b"", 0))[1]:
            raise type(refusal)(refusal.message, **refusal.details)  # a chunk after a refused one
        if total > limits.max_tensor_bytes:
            raise LimitExceeded(
                f"the upload of {total:,} bytes exceeds the limit of {limits.max_tensor_bytes:,} "
                "(GRADWIRE_MAX_TENSOR_BYTES)",
                setting="GRADWIRE_MAX_TENSOR_BYTES", limit=limits.max_tensor_bytes, value=total,
            )  # fmt: skip
        if key not in self:
            held = sum(len(b) for b, _ in self.values())
            if len(self) >= UPLOADS_KEPT:
                raise LimitExceeded(f"{len(self)} uploads are incomplete, the maximum", limit=UPLOADS_KEPT)
            if held + total > limits.max_session_bytes:
                raise LimitExceeded(
                    f"{len(self)} uploads of {held:,} bytes are incomplete, and {total:,} more exceed the limit "
                    "(GRADWIRE_MAX_SESSION_BYTES)",
                    setting="GRADWIRE_MAX_SESSION_BYTES", limit=limits.max_session_bytes, value=held + total,
                )  # fmt: skip
            # Not a bytearray, which would touch memory for chunks that may never arrive.
            self[key] = (np.empty(total, np.uint8).data, 0)
        buffer, filled = self[key]
        end = offset + data.nbytes
        if offset < 0 or offset > filled or end > len(buffer):
            raise MalformedFrame(
                f"a chunk of {data.nbytes} bytes at offset {offset} does not follow the {filled} bytes received"
            )
        buffer[offset:end] = data
        self[key] = (buffer, max(filled, end))
