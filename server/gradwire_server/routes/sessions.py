"""Sessions: create, list, get, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Request, Response

from gradwire_protocol.errors import InvalidRequest

from ..auth import caller_of
from ..http.models import MemoryView, SessionDetail, SessionList, SessionRequest, SessionView
from ..http.openapi import PROBLEMS
from ..http.state import TheServer, TheSession, TheTenant
from ..settings.settings import variable

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], responses=PROBLEMS)


@router.post("", operation_id="createSession", summary="Create a session", status_code=201, response_model=SessionView)
async def create(
    server: TheServer,
    request: Request,
    response: Response,
    body: Annotated[SessionRequest | None, Body()] = None,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> dict[str, Any]:
    """Create a session: tensors and their graph, shared by its clients and visible to one tenant.

    A repeated request with the same ``Idempotency-Key`` returns the session of the first one.
    """
    spec = body or SessionRequest()
    if asked := spec.placement():
        name, value = next(iter(asked.items()))
        raise InvalidRequest(
            f"{name}={value!r:.80} chooses a machine of a fleet, and this server is one machine; leave it out, or "
            "connect to the gateway of a fleet",
            setting=variable("session_host"), **{name: value},
        )  # fmt: skip
    key = caller_of(request).key
    requested = spec.limits.model_dump(exclude_none=True) if spec.limits is not None else None

    async def make() -> str:
        with server.access.quotas.reserve(
            key, server.registry.granted(key.tenant), requested, server.registry.ending(key.tenant)
        ) as limits:
            session = await server.registry.create(
                key.tenant,
                device=spec.device,
                default_dtype=spec.default_dtype,
                limits=limits,
                ttl_s=spec.ttl_s,
                seed=spec.seed,
                durability=spec.durability,
                name=spec.name,
            )
        server.access.audit.note("session_created", session=session.id)
        return session.id

    session_id = await server.registry.repeats.once(key.tenant, idempotency_key, spec.model_dump_json(), make)
    session = server.registry.get(session_id, key.tenant)
    response.headers["Location"] = f"{server.settings.root_path}/v1/sessions/{session.id}"
    return session.summary()


@router.get("", operation_id="listSessions", summary="List sessions", response_model=SessionList)
async def list_(server: TheServer, tenant: TheTenant) -> dict[str, Any]:
    """List the tenant's sessions, oldest first."""
    return {"sessions": [session.summary() for session in server.registry.of(tenant)]}


@router.get(
    "/{session_id}",
    operation_id="getSession",
    summary="Get a session",
    response_model=SessionDetail,
    response_model_exclude_unset=True,
)
async def get(session: TheSession, contents: bool = True) -> dict[str, Any]:
    """Get a session with counts and sizes of its contents. Without ``contents`` nothing is loaded or waited for."""
    if not contents:
        return session.summary()
    found = await session.host.describe()  # first, because it loads a dormant session
    return session.summary() | {"contents": found}


@router.get(
    "/{session_id}/memory",
    operation_id="getMemory",
    summary="Get the memory of a session",
    response_model=MemoryView,
    response_model_exclude_unset=True,
)
async def memory(session: TheSession) -> dict[str, Any]:
    """Get the memory of the session in bytes."""
    return await session.host.memory()


@router.delete(
    "/{session_id}/memory/peak",
    operation_id="resetPeakMemory",
    summary="Reset the peak memory of a session",
    response_model=MemoryView,
    response_model_exclude_unset=True,
)
async def reset_peak(session: TheSession) -> dict[str, Any]:
    """Reset the peak memory to the current memory. Returns the memory before the reset."""
    return await session.host.memory(reset_peak=True)


@router.delete("/{session_id}", operation_id="deleteSession", summary="Delete a session", status_code=204)
async def delete(server: TheServer, session: TheSession) -> None:
    """Delete a session and its tensors. Its streams close with 4404."""
    await server.registry.delete(session)
    server.access.audit.note("session_deleted", session=session.id)
