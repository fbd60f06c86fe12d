"""The clients of a session: their frame numbers and kept replies."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from gradwire_protocol.frames import Problem, Reply

from ..autograd.tensor import Storage
from .json_values import entries

REPLIES_KEPT: Final = 1024
REPLY_BYTES_KEPT: Final = 64 << 20
NESTED_NUMBER_BYTES: Final = 64
"""The memory of a number in a nested list, as a Python object and as text."""

Buffers = list[memoryview]


@dataclass
class Client:
    """One client of the session.

    Attributes:
        expected: the number of the next frame to apply.
        counter: the last counter of ids that the session chose.
        instance: the id of the client's process.
        epoch: increases each time the client joins; the session refuses frames of older epochs.
        failed_writes: memory that an in-place op failed to change. It is poisoned until the next read.
        failed_backward: set between a failed backward and the next read. Optimizer steps fail meanwhile, so that
            missing gradients do not change parameters.
    """

    number: int
    expected: int = 1
    counter: int = 0
    instance: str = ""
    epoch: int = 0
    replies: OrderedDict[int, tuple[Reply, Buffers]] = field(default_factory=OrderedDict)
    reply_bytes: int = 0
    failed_backward: Problem | None = None
    failed_writes: list[Storage] = field(default_factory=list)

    def failures_seen(self) -> None:
        """Reset failures after the client was told about them."""
        self.failed_backward = None
        for storage in self.failed_writes:
            storage.poison = None
        self.failed_writes.clear()

    def keep(self, reply: Reply, buffers: Buffers) -> None:
        self.replies[reply.seq] = (reply, buffers)
        self.reply_bytes += _weight(reply, buffers)
        while len(self.replies) > REPLIES_KEPT or (self.reply_bytes > REPLY_BYTES_KEPT and len(self.replies) > 1):
            self._forget(next(iter(self.replies)))

    def acknowledge(self, seq: int) -> None:
        while self.replies and next(iter(self.replies)) <= seq:
            self._forget(next(iter(self.replies)))

    def _forget(self, seq: int) -> None:
        self.reply_bytes -= _weight(*self.replies.pop(seq))


def _weight(reply: Reply, buffers: Buffers) -> int:
    """The approximate memory of a kept reply."""
    listed = sum([entries(value.shape) for value in reply.values if value.values is not None])
    return sum(map(len, buffers)) + NESTED_NUMBER_BYTES * listed
