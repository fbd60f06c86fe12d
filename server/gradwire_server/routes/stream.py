"""The WebSocket route. Its key and its session are checked before the WebSocket is accepted."""

from __future__ import annotations

from fastapi import APIRouter, WebSocket

from gradwire_protocol.errors import GradwireError, Unavailable

from .. import problems
from ..state import server_of, tenant_of
from ..stream import Stream

router = APIRouter()


@router.websocket("/v1/sessions/{session_id}/stream")
async def stream(socket: WebSocket, session_id: str) -> None:
    """Frames in order and pipelined; see docs/protocol.md."""
    server = server_of(socket)
    try:
        session = server.registry.get(session_id, tenant_of(socket))
        if server.registry.draining:
            raise Unavailable("the server is stopping: it takes no new streams")
    except GradwireError as error:
        await socket.send_denial_response(problems.response(error, socket.scope))
        return
    await socket.accept()
    connection = Stream(socket, session, server.settings, server.metrics, server.registry.devices)
    try:
        await connection.run()
    except Exception as error:
        await connection.abandon(problems.defect(error, socket.scope))
