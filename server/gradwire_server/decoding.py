"""From the bytes that clients send to messages: what they may take in memory is checked first, and where they are large
that and the decoding happen in threads beside the event loop.

The decoder holds the interpreter's lock until it is done, so a thread alone would keep nobody from waiting for it:
``max_decoded_bytes`` is what bounds that time. Walking through the bytes of a large message takes longer, and rests
most of the time (:class:`Pace`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from gradwire_protocol import bounds, envelope
from gradwire_protocol.errors import MalformedFrame
from gradwire_protocol.frames import Message

from .jobs import Buffers
from .sessions import Session
from .settings import Settings

T = TypeVar("T")

LARGE_BYTES: Final = 64 << 10
"""A header or a JSON text that is longer is decoded in a thread."""

THREADS: Final = 8
"""They sleep most of the time."""

_json_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


class Decoded(NamedTuple):
    """A message that came. ``weight``: about how many bytes its objects take beside its buffers."""

    message: Message
    buffers: Buffers
    weight: int


def allowed(settings: Settings, session: Session) -> int:
    """What a message for this session may take."""
    return min(settings.max_decoded_bytes, session.spec.limits.get("max_decoded_bytes", settings.max_decoded_bytes))


def is_large(data: bytes | str | memoryview) -> bool:
    """Whether a message is better decoded in a thread. Raw buffers are not: they stay where they are."""
    if isinstance(data, str):
        return len(data) > LARGE_BYTES
    return len(data) > LARGE_BYTES and envelope.header_size(data) > LARGE_BYTES


def decode(data: bytes | str | memoryview, most: int) -> Decoded:
    """The message of these bytes, whose objects may take ``most`` bytes.

    Raises:
        LimitExceeded: for a message that is too much, before it is decoded.
        MalformedFrame: for what is no message.
    """
    if isinstance(data, str):
        weight = bounds.check_json(data, most)
        return Decoded(decode_json(data, _json_decoder, "the text is not a message"), [], weight)
    weight = envelope.header_size(data) * bounds.MOST_OF_A_BYTE
    if weight > min(most, bounds.SMALL_BYTES * bounds.MOST_OF_A_BYTE):
        large = envelope.header_size(data) > LARGE_BYTES
        weight = bounds.check(envelope.header_of(data), most, Pace() if large else None)
    message, buffers = envelope.decode(data)
    return Decoded(message, buffers, weight)


def decode_json(text: str | bytes | memoryview, decoder: msgspec.json.Decoder[T], otherwise: str) -> T:
    """A JSON text that was checked before.

    Raises:
        MalformedFrame: which begins as told, and says what is wrong.
    """
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedFrame(f"{otherwise}: {error}") from None


class Pace:
    """What a thread calls again and again that computes in Python beside the event loop: it sleeps for three times as
    long as it has worked since the last call.

    The thread gives the interpreter's lock away when the loop asks for it, but not while it is kept from running
    itself. On processors that others want as well, ``/livez`` waited for 100 ms then.
    """

    REST: Final = 3

    def __init__(self) -> None:
        self._since = time.thread_time()

    def __call__(self) -> None:
        """Sleep."""
        time.sleep((time.thread_time() - self._since) * self.REST)
        self._since = time.thread_time()


class Decoding:
    """The threads that decode large messages. Of one tenant's messages one at a time is decoded."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "decoding")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def apart(self, tenant: str, work: Callable[[], T]) -> T:
        """Do something in a thread, after what this tenant has asked for before. Raises what it raises."""
        turn = self._turns.get(tenant)
        if turn is None:
            turn = self._turns[tenant] = asyncio.Lock()
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def do(self, tenant: str, size: int, work: Callable[[], T]) -> T:
        """Do something with so many bytes: at once where they are few, else as :meth:`apart`."""
        return work() if size <= LARGE_BYTES else await self.apart(tenant, work)

    def close(self) -> None:
        """Take nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
