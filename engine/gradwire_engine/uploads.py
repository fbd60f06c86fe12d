"""Uploads that are under way: what comes in pieces, ahead of the frame that needs it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np

from gradwire_protocol.errors import GradwireError, LimitExceeded, MalformedFrame

from .memory import Limits

UPLOADS_KEPT: Final = 64


Key = tuple[int, int]


class Uploads(OrderedDict[Key, tuple[memoryview, int]]):
    """By client and number: the memory, and how many bytes of it are filled.

    Attributes:
        refused: why pieces of the last uploads that failed were not taken: the frame that needs such an upload fails
            with that, not by its missing bytes. No image has it: it names a limit of this moment.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused: OrderedDict[Key, GradwireError] = OrderedDict()

    def refuse(self, key: Key, error: GradwireError) -> None:
        """Remember that a piece of this upload was not taken."""
        if self.refused.setdefault(key, error) is error and len(self.refused) > UPLOADS_KEPT:
            self.refused.popitem(last=False)

    def forget(self, key: Key) -> bool:
        """Let go of an upload; whether it was there."""
        self.refused.pop(key, None)
        return self.pop(key, None) is not None

    def take(self, key: Key) -> memoryview:
        """The bytes of an upload that has arrived whole; none for one of which nothing has.

        Raises:
            LimitExceeded, OutOfMemory: why it is not whole.
            MalformedFrame: when it is not whole for no reason of ours.
        """
        refusal = self.refused.pop(key, None)
        data, filled = self.pop(key, (memoryview(b""), 0))
        if filled == len(data) and (refusal is None or filled):
            return data
        if refusal is not None:
            raise type(refusal)(f"upload {key[1]}: {refusal.message}", **refusal.details)
        raise MalformedFrame(f"upload {key[1]} has {filled} of {len(data)} bytes")

    def add(self, limits: Limits, client: int, transfer: int, offset: int, total: int, data: memoryview) -> None:
        """Take a piece. Pieces may come again, but must come without gaps.

        Raises:
            LimitExceeded: for an upload over the limit of a tensor, before anything is allocated.
            MalformedFrame: for a piece that does not fit.
            MemoryError: when there is none.
        """
        if total < 0:
            raise MalformedFrame(f"an upload of {total:,} bytes")
        key = (client, transfer)
        refusal = self.refused.get(key)
        if refusal is not None and offset > self.get(key, (b"", 0))[1]:
            raise type(refusal)(refusal.message, **refusal.details)  # the pieces behind one that was not taken
        if total > limits.max_tensor_bytes:
            raise LimitExceeded(
                f"an upload of {total:,} bytes is over GRADWIRE_MAX_TENSOR_BYTES={limits.max_tensor_bytes:,}",
                setting="GRADWIRE_MAX_TENSOR_BYTES", limit=limits.max_tensor_bytes, value=total,
            )  # fmt: skip
        if key not in self:
            held = sum(len(b) for b, _ in self.values())
            if len(self) >= UPLOADS_KEPT:
                raise LimitExceeded(
                    f"{len(self)} uploads are unfinished, which is as many as there may be", limit=UPLOADS_KEPT
                )
            if held + total > limits.max_session_bytes:
                raise LimitExceeded(
                    f"{len(self)} uploads of {held:,} bytes are unfinished, {total:,} more are too many "
                    "(GRADWIRE_MAX_SESSION_BYTES)",
                    setting="GRADWIRE_MAX_SESSION_BYTES", limit=limits.max_session_bytes, value=held + total,
                )  # fmt: skip
            # Not a bytearray: that would fill, and so take, memory for what was announced and may never come.
            self[key] = (np.empty(total, np.uint8).data, 0)
        buffer, filled = self[key]
        end = offset + data.nbytes
        if offset < 0 or offset > filled or end > len(buffer):
            raise MalformedFrame(f"a piece of {data.nbytes} bytes at {offset} does not follow the {filled} received")
        buffer[offset:end] = data
        self[key] = (buffer, max(filled, end))
