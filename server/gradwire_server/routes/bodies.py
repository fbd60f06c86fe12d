"""Bodies of frames and tensors as bytes, without the framework's copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..http.body_limit import ALLOWANCE, HELD
from ..http.state import server_of

SLICE_BYTES: Final = 1 << 20


async def read_body(request: Request) -> memoryview:
    """The whole body in one buffer. The caller parses JSON, so it may be as large as the settings allow.

    Raises:
        BodyTooLarge: when the body exceeds the limit.
        ClientDisconnect: when the client disconnects.
    """
    request.scope[ALLOWANCE] = server_of(request).settings.max_decoded_bytes
    announced = request.headers.get("content-length")
    if announced is None:
        collected = bytearray()
        async for chunk in request.stream():
            collected += chunk
        return memoryview(collected)
    # Not a bytearray, which would touch memory for a Content-Length that may never arrive.
    buffer = np.empty(int(announced), np.uint8).data
    at = 0
    async for chunk in request.stream():
        buffer[at : at + len(chunk)] = chunk
        at += len(chunk)
    if at != len(buffer):
        raise ClientDisconnect
    return buffer


def hold(request: Request, weight: int) -> None:
    """Count the decoded size of a body. The size of JSON was counted while it arrived.

    Raises:
        TooManyRequests: when the tenant's backlog is full.
    """
    bodies = request.scope[HELD]
    refused = bodies.set_size(bodies.pending_bytes + weight)
    if refused is not None:
        raise refused


class ChunkedBody(Response):
    """A body sent in slices as fast as the client reads, without a copy of the whole."""

    def __init__(self, chunks: Sequence[bytes | memoryview], media_type: str, headers: dict[str, str]) -> None:
        self.chunks = [memoryview(chunk).cast("B") for chunk in chunks]
        size = sum(chunk.nbytes for chunk in self.chunks)
        super().__init__(b"", 200, headers | {"Content-Length": str(size)}, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for chunk in self.chunks:
            for at in range(0, chunk.nbytes, SLICE_BYTES):
                part = chunk[at : at + SLICE_BYTES]
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def as_json(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response, encoded by msgspec."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")
