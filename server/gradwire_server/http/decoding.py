"""Decodes messages from clients after a check of their decoded size. Threads check and decode large messages.

The decoder holds the GIL until it is done, so a thread alone would not keep the event loop responsive;
``max_decoded_bytes`` bounds that time. The size check of a large message takes longer, so it sleeps most of the time
(:class:`WalkPauses`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from gradwire_protocol import bounds, envelope, natural_frames
from gradwire_protocol.frames import Message, Reply
from gradwire_protocol.natural_frames import Defaults

from ..hosting.jobs import Buffers
from ..sessions.session import Session
from ..settings.settings import Settings

T = TypeVar("T")

LARGE_BYTES: Final = 64 << 10
"""Threads decode headers and JSON texts longer than this."""

THREADS: Final = 8
"""They sleep most of the time."""


class Decoded(NamedTuple):
    """A decoded message.

    Attributes:
        weight: the approximate memory of its objects, buffers excluded.
        read_names: the names by which a frame in JSON reads tensors.
    """

    message: Message
    buffers: Buffers
    weight: int
    read_names: Sequence[str] = ()


def decoded_limit(settings: Settings, session: Session) -> int:
    """The limit for the decoded size of a message for this session."""
    return min(settings.max_decoded_bytes, session.spec.limits.get("max_decoded_bytes", settings.max_decoded_bytes))


def defaults_of(session: Session) -> Defaults:
    """What frames in JSON may leave out in this session."""
    return Defaults(session.spec.default_dtype, session.spec.device)


def is_large(data: bytes | str | memoryview) -> bool:
    """Whether a thread should decode the message. Raw buffers do not count, because they are not copied."""
    if isinstance(data, str):
        return len(data) > LARGE_BYTES
    return len(data) > LARGE_BYTES and envelope.header_size(data) > LARGE_BYTES


def decode(data: bytes | str | memoryview, most: int, defaults: Defaults = Defaults()) -> Decoded:
    """Decode a message whose objects may take ``most`` bytes.

    Raises:
        LimitExceeded: when the decoded size would exceed the limit.
        MalformedFrame: when the message is invalid.
        RefusedFrame: when it is a frame in JSON with an invalid record or name.
    """
    if isinstance(data, str):
        weight = bounds.check_json(data, most)
        found = natural_frames.decode_message(data, defaults, WalkPauses() if is_large(data) else None)
        if isinstance(found, natural_frames.JsonFrame):
            return Decoded(found.frame, [], weight, found.read_names)
        return Decoded(found, [], weight)
    weight = envelope.header_size(data) * bounds.MOST_OF_A_BYTE
    if weight > min(most, bounds.SMALL_BYTES * bounds.MOST_OF_A_BYTE):
        weight = bounds.check(envelope.header_of(data), most, WalkPauses() if is_large(data) else None)
    message, buffers = envelope.decode(data)
    return Decoded(message, buffers, weight)


def with_names(reply: Reply, names: Sequence[str]) -> Reply:
    """A copy of the reply to a frame in JSON, its values with the names by which the frame reads them."""
    if not any(names):
        return reply
    values = [msgspec.structs.replace(value, name=name) for value, name in zip(reply.values, names, strict=False)]
    return msgspec.structs.replace(reply, values=[*values, *reply.values[len(values) :]])


class WalkPauses:
    """Throttles a thread that runs Python code beside the event loop. Each call sleeps for three times the CPU time
    since the last call.

    The thread releases the GIL on request, but not while the system has suspended it. On busy processors ``/livez``
    waited 100 ms for that.
    """

    REST: Final = 3

    def __init__(self) -> None:
        self._since = time.thread_time()

    def __call__(self) -> None:
        """Sleep."""
        time.sleep((time.thread_time() - self._since) * self.REST)
        self._since = time.thread_time()


class Decoding:
    """The threads that decode large messages, one at a time per tenant."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "decoding")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run_in_thread(self, tenant: str, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread, after earlier work of this tenant. Propagates its exceptions."""
        turn = self._turns.get(tenant)
        if turn is None:
            turn = self._turns[tenant] = asyncio.Lock()
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def run(self, tenant: str, size: int, work: Callable[[], T]) -> T:
        """Run ``work`` at once for a small ``size`` in bytes, else like :meth:`run_in_thread`."""
        return work() if size <= LARGE_BYTES else await self.run_in_thread(tenant, work)

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
