"""What the server does now: one reading, and a stream of readings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from gradwire_protocol.errors import GradwireError

from ..auth import Caller, caller_of
from ..http.activity_models import ActivityView
from ..http.openapi import PROBLEMS
from ..http.state import Server, TheServer

EVERY_S: Final = 1.0
NO_STORE: Final = {"Cache-Control": "no-store"}
EVENTS: Final = "text/event-stream"

router = APIRouter(prefix="/v1/activity", tags=["server"], responses=PROBLEMS)

SessionId = Annotated[
    str | None, Query(max_length=64, description="The tenant's session to describe in `detail`: last frames and log.")
]
STREAM_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Server-sent events", "content": {EVENTS: {"schema": {"type": "string"}}}}
}


@router.get("", operation_id="getActivity", summary="Get what the server does", response_model=ActivityView)
async def get(server: TheServer, request: Request, session: SessionId = None) -> Response:
    """Get sessions, workers, devices, the queue and the use of quotas: those of the tenant, or of all for a key with
    the scope `admin`. Counts as use of no session and wakes none.
    """
    body = await server.activity.encoded(caller_of(request).key, session)
    return Response(body, media_type="application/json", headers=NO_STORE)


@router.get(
    "/stream",
    operation_id="streamActivity",
    summary="Stream what the server does",
    response_class=Response,
    responses=STREAM_RESPONSE,
)
async def stream(server: TheServer, request: Request, session: SessionId = None) -> Response:
    """Get the document of `GET /v1/activity` each second, as server-sent events. The stream ends with the key and when
    the server stops; an event `end` then says why.
    """
    caller = caller_of(request)
    await server.activity.read(caller.key, session)  # a wrong session is an error of the request
    headers = NO_STORE | {"X-Accel-Buffering": "no"}
    return StreamingResponse(_events(server, request, caller, session), media_type=EVENTS, headers=headers)


async def _events(server: Server, request: Request, caller: Caller, session: str | None) -> AsyncIterator[bytes]:
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(reason: str) -> None:
        if not ended.done():
            ended.set_result(reason)

    with server.access.stream(caller.key, end), server.access.sign_ins.watched(caller.sign_in, end):
        yield b"retry: 2000\n\n"
        while not await request.is_disconnected():
            if server.registry.draining:
                end("the server is stopping")
            if ended.done():
                yield b"event: end\ndata: " + ended.result().encode() + b"\n\n"
                return
            try:
                body = await server.activity.encoded(caller.key, session)
            except GradwireError as error:  # the session has ended
                yield b"event: end\ndata: " + error.message.encode() + b"\n\n"
                return
            yield b"data: " + body + b"\n\n"
            await asyncio.wait((ended,), timeout=EVERY_S)
