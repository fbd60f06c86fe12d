"""What the server answers, held against what was asked. A server with a defect costs an error here, never a crash."""

from __future__ import annotations

import math
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.errors import GradwireError, MalformedFrame, from_code
from gradwire_protocol.frames import Chunk, Problem, Reply, Value

SLACK_BYTES: Final = 64 << 20
"""How much more than was asked for may arrive in chunks before something must be wrong."""


class Downloads:
    """Large values that arrive in chunks, before the reply they belong to."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[bytearray, int]] = {}

    def clear(self) -> None:
        """Forget what came; on the next connection it comes again from its beginning."""
        self._parts.clear()

    def take(self, chunk: Chunk, buffers: list[memoryview], expected: int) -> None:
        """Put a piece where it belongs. ``expected`` are the bytes that all unanswered reads may bring.

        Raises:
            MalformedFrame: for a piece that does not follow the last one, or for more than was asked for.
        """
        if len(buffers) != 1 or not buffers[0].nbytes:
            raise MalformedFrame(f"the server sent a chunk of {len(buffers)} buffers, it must be one that is not empty")
        if chunk.transfer not in self._parts:
            held = sum(len(whole) for whole, _ in self._parts.values())
            if chunk.total < 0 or held + chunk.total > expected + SLACK_BYTES:
                raise MalformedFrame(
                    f"the server announces {chunk.total:,} bytes besides {held:,} that are on their way, "
                    f"{expected:,} were asked for"
                )
            self._parts[chunk.transfer] = bytearray(chunk.total), 0
        whole, filled = self._parts[chunk.transfer]
        end = filled + buffers[0].nbytes
        if chunk.total != len(whole) or chunk.offset != filled or end > len(whole):
            raise MalformedFrame(
                f"the server sent {buffers[0].nbytes} bytes at {chunk.offset} of {chunk.total}, "
                f"{filled} of {len(whole)} had come"
            )
        whole[filled:end] = buffers[0]
        self._parts[chunk.transfer] = whole, end

    def whole(self, transfer: int) -> memoryview:
        """All the bytes of a download.

        Raises:
            MalformedFrame: when they did not come.
        """
        whole, filled = self._parts.get(transfer, (None, 0))
        if whole is None or filled != len(whole):
            raise MalformedFrame(f"the server's reply speaks of download {transfer}, of which {filled} bytes came")
        return memoryview(whole)

    def drop(self, transfer: int) -> None:
        """Let go of a download that a reply has taken."""
        self._parts.pop(transfer, None)


def gather(reply: Reply, buffers: list[memoryview], downloads: Downloads, reads: int) -> list[memoryview]:
    """The bytes of a reply's values, by the values' ``buffer``; what came in chunks is among them now.

    Raises:
        MalformedFrame: when the reply does not fit its frame, which reads ``reads`` tensors, or itself.
    """
    if len(reply.values) != reads:
        raise MalformedFrame(f"the server's reply has {len(reply.values)} values, frame {reply.seq} reads {reads}")
    found = list(buffers)
    for value in reply.values:
        if value.download is not None:
            found.append(downloads.whole(value.download))
            value.buffer, value.download = len(found) - 1, None
        _check(value, reply, found)
    return found


def _check(value: Value, reply: Reply, buffers: list[memoryview]) -> None:
    if value.error is not None and not 0 <= value.error < len(reply.errors):
        raise MalformedFrame(f"a value of the server's reply names error {value.error} of {len(reply.errors)}")
    if not value.dtype:
        return  # an undefined gradient, or an error
    dtype = dtypes.BY_NAME.get(value.dtype)
    if dtype is None or value.buffer is None or not 0 <= value.buffer < len(buffers) or min(value.shape, default=0) < 0:
        raise MalformedFrame(f"the server's reply has a value that cannot be read: {value!r:.120}")
    size = math.prod(value.shape) * dtype.itemsize
    if buffers[value.buffer].nbytes != size:
        raise MalformedFrame(
            f"{value.dtype} of shape {value.shape} takes {size} bytes, the server sent {buffers[value.buffer].nbytes}"
        )


def error_of(problem: Problem, text: str | None = None, **more: Any) -> GradwireError:
    """The typed error of a problem that travelled."""
    details = {name: part for name, part in problem.extra.items() if name not in ("code", "message")}
    return from_code(problem.code, problem.detail if text is None else text, **(details | more))
