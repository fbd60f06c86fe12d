"""The WebSocket route. The key and the session are checked before the WebSocket is accepted."""

from __future__ import annotations

import time

from fastapi import APIRouter, WebSocket
from structlog.contextvars import bind_contextvars

from gradwire_protocol.errors import GradwireError, Unavailable

from ..auth import caller_of
from ..errors import problems
from ..http.state import server_of, tenant_of
from ..websocket import redirection
from ..websocket.stream import Stream

router = APIRouter()


@router.websocket("/v1/sessions/{session_id}/stream")
async def stream(socket: WebSocket, session_id: str) -> None:
    """Ordered, pipelined frames; see docs/protocol.md."""
    server = server_of(socket)
    if server.redirector is not None:
        await socket.accept()
        await redirection.place(socket, session_id, caller_of(socket), server.redirector)
        return
    try:
        session = server.registry.get(session_id, tenant_of(socket))
        if server.registry.draining:
            raise Unavailable("the server is stopping and accepts no new streams")
    except GradwireError as error:
        await socket.send_denial_response(problems.response(error, socket.scope))
        return
    await socket.accept()
    who, access = caller_of(socket), server.access
    meter = access.rates.meter(who.key)
    backlog, devices = server.backlogs.of(session.tenant), server.registry.devices
    connection = Stream(socket, session, server.settings, server.metrics, devices, meter, server.decoding, backlog)
    connection.tracing = server.tracing
    bind_contextvars(session=session.id)
    access.audit.note("stream_opened", session=session.id)
    opened = time.monotonic()
    try:
        with access.stream(who.key, connection.end_with_key):
            await connection.run()
    except Exception as error:
        await connection.abandon(problems.defect(error, socket.scope))
    finally:
        if meter.held:
            access.audit.note("limit_hit", "slowed", session=session.id, seconds=round(meter.held, 3))
        access.audit.note(
            "stream_closed", session=session.id, frames=meter.frames, ops=meter.ops, bytes_in=meter.bytes_in,
            bytes_out=meter.bytes_out, seconds=round(time.monotonic() - opened, 3), code=connection.closed_with,
        )  # fmt: skip
