"""What a stream sends: messages, small replies without waiting, large values in chunks before their reply."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.websockets import WebSocket

from gradwire_engine.json_values import entries
from gradwire_protocol import envelope
from gradwire_protocol.frames import Chunk, Message, Reply, Value

from ..access.rates import Meter
from ..http.reception import StreamReception
from ..jobs import Buffers
from ..metrics import Metrics

CHUNK_BYTES: Final = 2 << 20
"""Piece of a download. Larger pieces are no faster."""

INLINE_BYTES: Final = 256 << 10
"""Values up to this size travel inside the reply."""

MESSAGE_OVERHEAD: Final = 512
"""What a waiting message costs beside its bytes, so that a flood of tiny ones is bounded, too."""

_json_encoder = msgspec.json.Encoder()


def weight(reply: Reply, buffers: Buffers) -> int:
    """About how many bytes a reply holds until it is sent. Numbers in JSON form are Python objects."""
    numbers = sum(entries(value.shape) for value in reply.values if value.values is not None)
    told = len(reply.values) + len(reply.errors)
    return sum(b.nbytes for b in buffers) + 64 * numbers + MESSAGE_OVERHEAD * (1 + told)


class Outgoing:
    """The way out of one stream.

    Attributes:
        busy: a reply is on its way, so that no other may overtake it.
    """

    def __init__(self, socket: WebSocket, direct: StreamReception | None, metrics: Metrics, meter: Meter) -> None:
        self.busy = False
        self._socket = socket
        self._direct = direct
        self._metrics = metrics
        self._meter = meter
        self._transfers = 0

    def sent_now(self, reply: Reply, buffers: Buffers) -> bool:
        """Send a reply without waiting; False, and nothing is sent, where it is large, or the client does not read."""
        direct = self._direct
        if direct is None or self.busy:
            return False
        if buffers:
            if sum(b.nbytes for b in buffers) > INLINE_BYTES:
                return False
            reply = msgspec.structs.replace(reply)  # the host keeps its own
        data = envelope.join(envelope.encode(reply, buffers))
        if not direct.send_now(data):
            return False
        self._count(len(data))
        return True

    async def reply(self, reply: Reply, buffers: Buffers, human: bool) -> None:
        """Send a reply. Raises as :meth:`send`."""
        self.busy = True
        inline, values = buffers, reply.values
        if sum(b.nbytes for b in buffers) > INLINE_BYTES:
            values, inline = await self._large(reply.values, buffers)
        # The host keeps this reply, to send it again if need be: what is sent is a copy.
        await self.send(msgspec.structs.replace(reply, values=values), inline, human)
        self.busy = False

    async def _large(self, values: list[Value], buffers: Buffers) -> tuple[list[Value], Buffers]:
        """Send large values in chunks, before the reply that they belong to; what is left goes inside it."""
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
                await self._chunks(self._transfers, buffers[value.buffer])
                sent.append(msgspec.structs.replace(value, buffer=None, download=self._transfers))
        return sent, inline

    async def _chunks(self, transfer: int, data: memoryview) -> None:
        for offset in range(0, data.nbytes, CHUNK_BYTES):
            piece = data[offset : offset + CHUNK_BYTES]
            await self.send(Chunk(transfer, offset, data.nbytes), [piece], human=False)

    async def send(self, message: Message, buffers: Buffers, human: bool) -> None:
        """Send one message, as JSON to a person. Waits while the client does not read.

        Raises:
            WebSocketDisconnect: when the client is gone.
        """
        if human:
            text = _json_encoder.encode(message)
            await self._socket.send_text(text.decode())
            self._count(len(text))
            return
        data = envelope.join(envelope.encode(message, buffers))
        await self._socket.send_bytes(data)
        self._count(len(data))

    def _count(self, size: int) -> None:
        self._metrics.stream_out.inc(size)
        self._meter.gave(size)
