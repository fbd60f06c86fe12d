"""Validation of replies against what was requested. A defective server causes an error, never a crash."""

from __future__ import annotations

import math
import time
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.errors import GradwireError, MalformedFrame, from_code
from gradwire_protocol.frames import Chunk, Problem, Reply, Value

from ..context.waiting import Facts

SLACK_BYTES: Final = 64 << 20
"""How many bytes beyond what was requested may arrive in chunks before it is an error."""


class Downloads:
    """Large values that arrive in chunks before their reply."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[bytearray, int]] = {}
        self._began = 0.0

    def clear(self) -> None:
        """Discard partial downloads; on the next connection they start over."""
        self._parts.clear()

    def take(self, chunk: Chunk, buffers: list[memoryview], expected: int) -> None:
        """Store a chunk. ``expected``: the bytes that all unanswered reads may return.

        Raises:
            MalformedFrame: for a chunk that does not follow the last one, or more bytes than were requested.
        """
        if len(buffers) != 1 or not buffers[0].nbytes:
            raise MalformedFrame(f"the server sent a chunk with {len(buffers)} buffers; expected one that is not empty")
        if chunk.transfer not in self._parts:
            if not self._parts:
                self._began = time.monotonic()
            held = sum(len(whole) for whole, _ in self._parts.values())
            if chunk.total < 0 or held + chunk.total > expected + SLACK_BYTES:
                raise MalformedFrame(
                    f"the server announced a download of {chunk.total:,} bytes, with {held:,} in progress; "
                    f"{expected:,} were requested"
                )
            self._parts[chunk.transfer] = bytearray(chunk.total), 0
        whole, filled = self._parts[chunk.transfer]
        end = filled + buffers[0].nbytes
        if chunk.total != len(whole) or chunk.offset != filled or end > len(whole):
            raise MalformedFrame(
                f"the server sent {buffers[0].nbytes} bytes at offset {chunk.offset} of {chunk.total}; "
                f"{filled} of {len(whole)} had arrived"
            )
        whole[filled:end] = buffers[0]
        self._parts[chunk.transfer] = whole, end

    def facts(self) -> Facts | None:
        """How far the downloads have come; ``None`` if there is none. Any thread may ask."""
        parts = list(self._parts.values())
        if not parts:
            return None
        done, total = sum(filled for _, filled in parts), sum(len(whole) for whole, _ in parts)
        return Facts("download", done=done, total=total, began=self._began)

    def whole(self, transfer: int) -> memoryview:
        """Return all bytes of a download.

        Raises:
            MalformedFrame: when it is incomplete.
        """
        whole, filled = self._parts.get(transfer, (None, 0))
        if whole is None or filled != len(whole):
            raise MalformedFrame(f"the reply refers to download {transfer}, which is incomplete ({filled} bytes)")
        return memoryview(whole)

    def drop(self, transfer: int) -> None:
        """Release a download that a reply has used."""
        self._parts.pop(transfer, None)


def gather(reply: Reply, buffers: list[memoryview], downloads: Downloads, reads: int) -> list[memoryview]:
    """Return the buffers of a reply's values, indexed by the values' ``buffer``, with downloads added.

    Raises:
        MalformedFrame: when the reply is inconsistent, or does not match its frame, which reads ``reads`` tensors.
    """
    if len(reply.values) != reads:
        raise MalformedFrame(f"the server's reply has {len(reply.values)} values; frame {reply.seq} reads {reads}")
    found = list(buffers)
    for value in reply.values:
        if value.download is not None:
            found.append(downloads.whole(value.download))
            value.buffer, value.download = len(found) - 1, None
        _check(value, reply, found)
    return found


def _check(value: Value, reply: Reply, buffers: list[memoryview]) -> None:
    if value.error is not None and not 0 <= value.error < len(reply.errors):
        raise MalformedFrame(f"a value of the server's reply refers to error {value.error} of {len(reply.errors)}")
    if not value.dtype:
        return  # an undefined gradient, or an error
    dtype = dtypes.BY_NAME.get(value.dtype)
    if dtype is None or value.buffer is None or not 0 <= value.buffer < len(buffers) or min(value.shape, default=0) < 0:
        raise MalformedFrame(f"invalid value in the server's reply: {value!r:.120}")
    size = math.prod(value.shape) * dtype.itemsize
    if buffers[value.buffer].nbytes != size:
        raise MalformedFrame(
            f"{value.dtype} of shape {value.shape} takes {size} bytes; the server sent {buffers[value.buffer].nbytes}"
        )


def error_of(problem: Problem, text: str | None = None, **more: Any) -> GradwireError:
    """The typed error of a problem in a message."""
    details = {name: part for name, part in problem.extra.items() if name not in ("code", "message")}
    return from_code(problem.code, problem.detail if text is None else text, **(details | more))
