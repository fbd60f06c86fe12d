"""A session as a file: export what it holds, and start another with it, on this server or on another one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from gradwire_protocol.errors import UnsupportedMediaType

from ..access import caller_of
from ..durable import snapshots
from ..durable.spec import Durability
from ..http.openapi import EXPORT_RESPONSE, IMPORT_REQUEST, PROBLEMS
from ..models import Device, Seconds, SessionView
from ..state import TheServer, TheSession
from ..tensor_formats import RAW, SAFETENSORS
from .bodies import Pieces, read_body

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], responses=PROBLEMS)


@router.get("/{session_id}/export", response_class=Response, responses=EXPORT_RESPONSE)
async def export(server: TheServer, session: TheSession) -> Response:
    """The session's tensors and names, and where its random numbers are, as one safetensors file.

    The graph is not in it: tensors that need a gradient are leaves in the file.
    """
    file = await session.host.export()
    server.metrics.rest_out.inc(len(file))
    server.access.audit.note("session_exported", session=session.id, bytes_out=len(file))
    name = f'attachment; filename="{session.id}.safetensors"'
    return Pieces([file], SAFETENSORS, {"Content-Disposition": name})


@router.post("/import", status_code=201, response_model=SessionView, openapi_extra=IMPORT_REQUEST)
async def import_(
    server: TheServer,
    request: Request,
    response: Response,
    device: Annotated[Device, Query(description="Where tensors of the new session live unless an op says so.")] = None,
    ttl_s: Annotated[Seconds, Query(description="Seconds of disuse after which it expires.")] = None,
    durability: Annotated[Durability | None, Query(description="What the new session survives.")] = None,
    content_type: Annotated[str, Header()] = SAFETENSORS,
) -> dict[str, Any]:
    """Start a session with what an exported one held. Tensors keep their ids and names."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (SAFETENSORS, RAW):
        raise UnsupportedMediaType(f"{kind!r:.80} is no form of a session: use {SAFETENSORS}", accepted=[SAFETENSORS])
    key = caller_of(request).key
    registry = server.registry
    with server.access.quotas.room(key, registry.promised(key.tenant), None, registry.ending(key.tenant)) as limits:
        registry.check_room(key.tenant)
        file = await read_body(request)
        server.metrics.rest_in.inc(len(file))
        most = server.settings.max_decoded_bytes
        await server.decoding.do(key.tenant, len(file), lambda: snapshots.check_header(file, most))
        session = await registry.create(
            key.tenant, device=device, limits=limits, ttl_s=ttl_s, durability=durability, image=file
        )
    server.access.audit.note("session_imported", session=session.id, bytes_in=len(file))
    response.headers["Location"] = f"{server.settings.root_path}/v1/sessions/{session.id}"
    return session.summary()
