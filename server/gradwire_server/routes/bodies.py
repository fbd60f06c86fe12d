"""Bodies in and out as bytes, where a framework's copy too many would cost: frames and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..http.body_limit import ALLOWANCE, HELD
from ..state import server_of

SLICE_BYTES: Final = 1 << 20


async def read_body(request: Request) -> memoryview:
    """The whole body, in one piece of memory. The limit on bodies was installed before; JSON may be as large as the
    settings say, and is the caller's to parse.

    Raises:
        BodyTooLarge: when it passes the limit while it is being read.
        ClientDisconnect: when the client goes away.
    """
    request.scope[ALLOWANCE] = server_of(request).settings.max_decoded_bytes
    announced = request.headers.get("content-length")
    if announced is None:
        collected = bytearray()
        async for piece in request.stream():
            collected += piece
        return memoryview(collected)
    # Not a bytearray: that would fill, and so take, memory for what was announced and may never come.
    buffer = np.empty(int(announced), np.uint8).data
    at = 0
    async for piece in request.stream():
        buffer[at : at + len(piece)] = piece
        at += len(piece)
    if at != len(buffer):
        raise ClientDisconnect
    return buffer


def hold(request: Request, weight: int) -> None:
    """Count what has become of a body, beside its bytes; of JSON that is known before.

    Raises:
        TooManyRequests: when the tenant's other requests and streams hold too much.
    """
    held = request.scope[HELD]
    refused = held.take(held.held + weight)
    if refused is not None:
        raise refused


class Pieces(Response):
    """A body that is sent slice by slice, no faster than the client reads, and never copied whole."""

    def __init__(self, pieces: Sequence[bytes | memoryview], media_type: str, headers: dict[str, str]) -> None:
        self.pieces = [memoryview(piece).cast("B") for piece in pieces]
        size = sum(piece.nbytes for piece in self.pieces)
        super().__init__(b"", 200, headers | {"Content-Length": str(size)}, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for piece in self.pieces:
            for at in range(0, piece.nbytes, SLICE_BYTES):
                part = piece[at : at + SLICE_BYTES]
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def as_json(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response of JSON-ready data or structs, through the fast encoder."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")
