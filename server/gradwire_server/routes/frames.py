"""Frames over REST: the same as on a stream, one per request, as JSON or MessagePack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Header, Path, Query, Request, Response

from gradwire_protocol import bounds, envelope
from gradwire_protocol.errors import MalformedFrame, NotFound, UnsupportedMediaType
from gradwire_protocol.frames import ID_BITS, MAX_ID, Frame, Reply
from gradwire_protocol.natural_frames import Defaults, RefusedFrame, decode_frame

from ..errors.error_mapping import from_problem
from ..hosting.jobs import Buffers
from ..http import shortcut_frames
from ..http.decoding import LARGE_BYTES, WalkPauses, decode, decoded_limit, defaults_of, with_names
from ..http.models import CancelledView, ClientView
from ..http.openapi import FRAME_REQUEST, FRAME_RESPONSE, PROBLEMS
from ..http.shortcut_frames import BuiltFrame
from ..http.state import TheServer, TheSession
from .bodies import ChunkedBody, as_json, hold, read_body
from .submit import submit

MSGPACK: Final = "application/msgpack"
JSON: Final = "application/json"

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["frames"], responses=PROBLEMS)


@router.post(
    "/frames",
    operation_id="submitFrame",
    summary="Submit a frame",
    response_class=Response,
    responses=FRAME_RESPONSE,
    openapi_extra=FRAME_REQUEST,
)
async def post(
    server: TheServer,
    session: TheSession,
    request: Request,
    content_type: Annotated[str, Header(include_in_schema=False)] = JSON,
) -> Response:
    """Apply a frame: op records in order, ids to release, values to read.

    The response to an applied frame is 200 even if ops failed; ``errors`` lists them. The server applies a numbered
    frame (``seq``) once, even if it is sent repeatedly, and a frame with ``seq`` 0 each time.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (JSON, MSGPACK):
        raise UnsupportedMediaType(
            f"unsupported media type {kind!r:.80} for a frame; use {JSON} or {MSGPACK}", accepted=[JSON, MSGPACK]
        )
    body = await read_body(request)
    server.metrics.rest_in.inc(len(body))
    human = kind == JSON
    most = decoded_limit(server.settings, session)
    size = len(body) if human else envelope.header_size(body)
    defaults = defaults_of(session)
    frame, buffers, weight, names = await server.decoding.run(
        session.tenant, size, lambda: _decode(body, most, defaults) if human else _unpack(body, most)
    )
    hold(request, weight)
    if frame.client > shortcut_frames.SERVER and not frame.seq:
        raise MalformedFrame(f"a frame of client {frame.client} must have a number (seq)")
    reply, out = await submit(server, session, BuiltFrame(frame, buffers, human))
    if reply.refused is not None:
        raise from_problem(reply.refused)
    server.metrics.count_errors(reply, "rest")
    response = as_json(with_names(reply, names)) if human else _pack(reply, out)
    server.metrics.rest_out.inc(int(response.headers["content-length"]))
    return response


@router.delete(
    "/frames", operation_id="cancelFrames", summary="Cancel all frames", status_code=202, response_model=CancelledView
)
async def cancel_all(
    session: TheSession, client: Annotated[int | None, Query(ge=0, le=MAX_ID >> ID_BITS)] = None
) -> dict[str, int]:
    """Cancel all queued and running frames of the session, or those of one client.

    A running frame stops between two kernels. The server undoes it, and its reply has poisoned results (``cancelled``).
    Returns the number of cancelled frames.
    """
    return {"frames": await session.cancel(client)}


@router.delete(
    "/frames/{seq}", operation_id="cancelFrame", summary="Cancel a frame", status_code=202, response_model=CancelledView
)
async def cancel(
    session: TheSession,
    seq: Annotated[int, Path(ge=1, le=MAX_ID, description="Number of the frame")],
    client: Annotated[int, Query(ge=0, le=MAX_ID >> ID_BITS, description="Client of the frame")] = 0,
) -> dict[str, int]:
    """Cancel one queued or running frame. An unnumbered REST frame has the next number of client 0."""
    found = await session.cancel(client, seq, seq)
    if not found:
        raise NotFound(f"frame {seq} of client {client} is neither queued nor running")
    return {"frames": found}


@router.post(
    "/clients", operation_id="registerClient", summary="Register a client", status_code=201, response_model=ClientView
)
async def register(session: TheSession) -> dict[str, int]:
    """Register a client with its own sequence of frame numbers and its own range of ids.

    For programs that post frames over REST and retry them safely. A stream registers its client itself.
    """
    client, expected, _ = await session.host.join(0)
    return {"client": client, "expected": expected, "first_id": (client << ID_BITS) + 1}


def _decode(body: memoryview, most: int, defaults: Defaults) -> tuple[Frame, Buffers, int, Sequence[str]]:
    text = bytes(body)
    bounds.check_json(text, most)
    try:
        frame, names = decode_frame(text, defaults, WalkPauses() if len(text) > LARGE_BYTES else None)
    except RefusedFrame as refused:
        refused.error.details.setdefault("seq", refused.seq)
        raise refused.error from None
    return frame.spelled_out(), [], 0, names


def _unpack(body: memoryview, most: int) -> tuple[Frame, Buffers, int, Sequence[str]]:
    message, buffers, weight, _ = decode(body, most)
    if not isinstance(message, Frame):
        raise MalformedFrame(f"the body is a {type(message).__name__.lower()}, not a frame")
    return message.spelled_out(), buffers, weight, ()


def _pack(reply: Reply, buffers: Buffers) -> Response:
    # Copy, because the session keeps the reply for repetitions.
    return ChunkedBody(envelope.encode(msgspec.structs.replace(reply), buffers), MSGPACK, {})
