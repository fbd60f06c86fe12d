"""Frames over REST: the same frames as on a stream, one a request, as JSON or as MessagePack."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Header, Path, Query, Request, Response

from gradwire_protocol import bounds, envelope
from gradwire_protocol.errors import MalformedFrame, NotFound, UnsupportedMediaType
from gradwire_protocol.frames import ID_BITS, MAX_ID, Frame, Reply

from .. import framebuild
from ..decoding import allowed, decode, decode_json
from ..framebuild import Built
from ..http.openapi import FRAME_REQUEST, FRAME_RESPONSE, PROBLEMS
from ..jobs import Buffers
from ..models import CancelledView, ClientView
from ..refusals import from_problem
from ..state import TheServer, TheSession
from .bodies import Pieces, as_json, hold, read_body
from .submit import submit

MSGPACK: Final = "application/msgpack"
JSON: Final = "application/json"

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["frames"], responses=PROBLEMS)
_decoder: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(Frame)


@router.post("/frames", response_class=Response, responses=FRAME_RESPONSE, openapi_extra=FRAME_REQUEST)
async def post(
    server: TheServer, session: TheSession, request: Request, content_type: Annotated[str, Header()] = JSON
) -> Response:
    """Apply a frame: op records in order, ids to release, values to read.

    The reply to a frame that was applied is a success, even if some of its ops failed: ``errors`` says which. A
    frame with a number (``seq``) is applied once, however often it is sent; one with ``seq`` 0 each time.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (JSON, MSGPACK):
        raise UnsupportedMediaType(
            f"{kind!r:.80} is no form of a frame: use {JSON} or {MSGPACK}", accepted=[JSON, MSGPACK]
        )
    body = await read_body(request)
    server.metrics.rest_in.inc(len(body))
    human = kind == JSON
    most = allowed(server.settings, session)
    size = len(body) if human else envelope.header_size(body)
    frame, buffers, weight = await server.decoding.do(
        session.tenant, size, lambda: _decode(body, most) if human else _unpack(body, most)
    )
    hold(request, weight)
    if frame.client > framebuild.SERVER and not frame.seq:
        raise MalformedFrame(f"frames of client {frame.client} must be numbered: another program counts on it")
    reply, out = await submit(server, session, Built(frame, buffers, human))
    if reply.refused is not None:
        raise from_problem(reply.refused)
    server.metrics.told(reply, "rest")
    response = as_json(reply) if human else _pack(reply, out)
    server.metrics.rest_out.inc(int(response.headers["content-length"]))
    return response


@router.delete("/frames", status_code=202, response_model=CancelledView)
async def cancel_all(
    session: TheSession, client: Annotated[int | None, Query(ge=0, le=MAX_ID >> ID_BITS)] = None
) -> dict[str, int]:
    """Cancel all frames of the session that wait or run; those of one client, if it is named.

    Each stops where it is asked next, between two kernels, and is answered with its results poisoned (``cancelled``):
    the session is as it was before it. Tells how many there were.
    """
    return {"frames": await session.cancel(client)}


@router.delete("/frames/{seq}", status_code=202, response_model=CancelledView)
async def cancel(
    session: TheSession,
    seq: Annotated[int, Path(ge=1, le=MAX_ID, description="Number of the frame")],
    client: Annotated[int, Query(ge=0, le=MAX_ID >> ID_BITS, description="Whose frame it is")] = 0,
) -> dict[str, int]:
    """Cancel one frame that waits or runs. A frame over REST that has no number of its own has the next of client 0."""
    found = await session.cancel(client, seq, seq)
    if not found:
        raise NotFound(f"frame {seq} of client {client} neither waits nor runs: it was answered, or has not come")
    return {"frames": found}


@router.post("/clients", status_code=201, response_model=ClientView)
async def register(session: TheSession) -> dict[str, int]:
    """Register a client: a number under which frames are counted, and a range of ids that are its own.

    For a program that posts frames and wants to repeat them safely beside others. A stream does this by itself.
    """
    client, expected, _ = await session.host.join(0)
    return {"client": client, "expected": expected, "first_id": (client << ID_BITS) + 1}


def _decode(body: memoryview, most: int) -> tuple[Frame, Buffers, int]:
    text = bytes(body)
    bounds.check_json(text, most)
    return decode_json(text, _decoder, "the body is not a frame").spelled_out(), [], 0


def _unpack(body: memoryview, most: int) -> tuple[Frame, Buffers, int]:
    message, buffers, weight = decode(body, most)
    if not isinstance(message, Frame):
        raise MalformedFrame(f"the body is a {type(message).__name__.lower()}, not a frame")
    return message.spelled_out(), buffers, weight


def _pack(reply: Reply, buffers: Buffers) -> Response:
    # A copy: the session keeps the reply, to give it again.
    return Pieces(envelope.encode(msgspec.structs.replace(reply), buffers), MSGPACK, {})
