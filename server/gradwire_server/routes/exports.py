"""Export and import of sessions as files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from gradwire_protocol.errors import UnsupportedMediaType

from ..auth import caller_of
from ..durable import snapshots
from ..http.models import Bound, Device, Seconds, SessionView
from ..http.openapi import EXPORT_RESPONSE, IMPORT_REQUEST, PROBLEMS
from ..http.state import TheServer, TheSession
from ..http.tensor_formats import RAW, SAFETENSORS
from ..settings.session_spec import Durability
from .bodies import ChunkedBody, read_body

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], responses=PROBLEMS)


@router.get(
    "/{session_id}/export",
    operation_id="exportSession",
    summary="Export a session",
    response_class=Response,
    responses=EXPORT_RESPONSE,
)
async def export(server: TheServer, session: TheSession) -> Response:
    """Export a session's tensors, their names and the state of its random number generator as a safetensors file.

    The file does not contain the graph: tensors that require a gradient become leaves.
    """
    file = await session.host.export()
    server.metrics.rest_out.inc(len(file))
    server.access.audit.note("session_exported", session=session.id, bytes_out=len(file))
    name = f'attachment; filename="{session.id}.safetensors"'
    return ChunkedBody([file], SAFETENSORS, {"Content-Disposition": name})


@router.post(
    "/import",
    operation_id="importSession",
    summary="Import a session",
    status_code=201,
    response_model=SessionView,
    openapi_extra=IMPORT_REQUEST,
)
async def import_(
    server: TheServer,
    request: Request,
    response: Response,
    device: Annotated[Device, Query(description="Default device of the new session.")] = None,
    ttl_s: Annotated[Seconds, Query(description="Idle seconds after which it expires.")] = None,
    durability: Annotated[Durability | None, Query(description="Durability of the new session.")] = None,
    max_session_bytes: Annotated[Bound | None, Query(description="Memory limit of the new session.")] = None,
    content_type: Annotated[str, Header(include_in_schema=False)] = SAFETENSORS,
) -> dict[str, Any]:
    """Create a session from an exported file. Tensors keep their ids and names."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (SAFETENSORS, RAW):
        raise UnsupportedMediaType(
            f"unsupported media type {kind!r:.80} for a session; use {SAFETENSORS}", accepted=[SAFETENSORS]
        )
    key = caller_of(request).key
    registry = server.registry
    asked = None if max_session_bytes is None else {"max_session_bytes": max_session_bytes}
    with server.access.quotas.reserve(key, registry.granted(key.tenant), asked, registry.ending(key.tenant)) as limits:
        registry.check_capacity(key.tenant)
        file = await read_body(request)
        server.metrics.rest_in.inc(len(file))
        most = server.settings.max_decoded_bytes
        await server.decoding.run(key.tenant, len(file), lambda: snapshots.check_header(file, most))
        session = await registry.create(
            key.tenant, device=device, limits=limits, ttl_s=ttl_s, durability=durability, image=file
        )
    server.access.audit.note("session_imported", session=session.id, bytes_in=len(file))
    response.headers["Location"] = f"{server.settings.root_path}/v1/sessions/{session.id}"
    return session.summary()
