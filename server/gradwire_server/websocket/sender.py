"""The sending side of a stream: small replies at once, large values in chunks before their reply."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.websockets import WebSocket

from gradwire_engine.session.json_values import entries
from gradwire_protocol import envelope
from gradwire_protocol.frames import Chunk, Message, Reply, Value

from ..auth.rates import StreamMeter
from ..hosting.jobs import Buffers
from ..http.connection_limits import LimitedStream
from ..observability.metrics import Metrics

CHUNK_BYTES: Final = 2 << 20
"""Chunk size of a download. Larger chunks are no faster."""

INLINE_BYTES: Final = 256 << 10
"""Values up to this size travel inside the reply."""

MESSAGE_OVERHEAD: Final = 512
"""The assumed memory of a queued message beside its bytes, which bounds floods of tiny messages."""

_json_encoder = msgspec.json.Encoder()


def weight(reply: Reply, buffers: Buffers) -> int:
    """The approximate memory of a queued reply. Numbers in JSON form are Python objects."""
    numbers = sum(entries(value.shape) for value in reply.values if value.values is not None)
    parts = 1 + len(reply.values) + len(reply.errors)
    return sum(b.nbytes for b in buffers) + 64 * numbers + MESSAGE_OVERHEAD * parts


class StreamSender:
    """Sends the messages of one stream.

    Attributes:
        busy: a reply is being sent; later ones must not overtake it.
    """

    def __init__(self, socket: WebSocket, direct: LimitedStream | None, metrics: Metrics, meter: StreamMeter) -> None:
        self.busy = False
        self._socket = socket
        self._direct = direct
        self._metrics = metrics
        self._meter = meter
        self._transfers = 0

    def try_send(self, reply: Reply, buffers: Buffers) -> bool:
        """Send a reply without waiting. Returns False, without sending, if it is large or the client does not read."""
        direct = self._direct
        if direct is None or self.busy:
            return False
        if buffers:
            if sum(map(len, buffers)) > INLINE_BYTES:
                return False
            reply = msgspec.structs.replace(reply)  # encoding changes it, and the host keeps the original
        data = envelope.join(envelope.encode(reply, buffers))
        if not direct.send_now(data):
            return False
        self._metrics.stream_out.inc(len(data))
        self._meter.sent(len(data))
        return True

    async def reply(self, reply: Reply, buffers: Buffers, human: bool) -> None:
        """Send a reply. Raises like :meth:`send`."""
        self.busy = True
        inline, values = buffers, reply.values
        if sum(b.nbytes for b in buffers) > INLINE_BYTES:
            values, inline = await self._send_large(reply.values, buffers)
        # Send a copy, because the host keeps the reply for a repetition.
        await self.send(msgspec.structs.replace(reply, values=values), inline, human)
        self.busy = False

    async def _send_large(self, values: list[Value], buffers: Buffers) -> tuple[list[Value], Buffers]:
        """Send large values in chunks before their reply. Returns the values and buffers of the reply itself."""
        inline: Buffers = []
        sent: list[Value] = []
        for value in values:
            if value.buffer is None:
                sent.append(value)
            elif buffers[value.buffer].nbytes <= INLINE_BYTES:
                sent.append(msgspec.structs.replace(value, buffer=len(inline)))
                inline.append(buffers[value.buffer])
            else:
                self._transfers += 1
                await self._send_chunks(self._transfers, buffers[value.buffer])
                sent.append(msgspec.structs.replace(value, buffer=None, download=self._transfers))
        return sent, inline

    async def _send_chunks(self, transfer: int, data: memoryview) -> None:
        for offset in range(0, data.nbytes, CHUNK_BYTES):
            chunk = data[offset : offset + CHUNK_BYTES]
            await self.send(Chunk(transfer, offset, data.nbytes), [chunk], human=False)

    async def send(self, message: Message, buffers: Buffers, human: bool) -> None:
        """Send one message, as JSON if ``human``. Waits while the client does not read.

        Raises:
            WebSocketDisconnect: when the client has disconnected.
        """
        if human:
            data = _json_encoder.encode(message)
            await self._socket.send_text(data.decode())
        else:
            data = envelope.join(envelope.encode(message, buffers))
            await self._socket.send_bytes(data)
        self._metrics.stream_out.inc(len(data))
        self._meter.sent(len(data))
