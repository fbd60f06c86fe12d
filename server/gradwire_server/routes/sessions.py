"""Sessions: create, list, look at, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Request, Response

from ..access import caller_of
from ..http.openapi import PROBLEMS
from ..models import MemoryView, SessionDetail, SessionList, SessionRequest, SessionView
from ..state import TheServer, TheSession, TheTenant

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], responses=PROBLEMS)


@router.post("", status_code=201, response_model=SessionView)
async def create(
    server: TheServer,
    request: Request,
    response: Response,
    body: Annotated[SessionRequest | None, Body()] = None,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> dict[str, Any]:
    """Start a session: a space of tensors and their graph, shared by all its clients, visible to one API key.

    With an ``Idempotency-Key``, the same request sent again starts no other: it is answered with the one it started.
    """
    wanted = body or SessionRequest()
    key = caller_of(request).key
    asked = wanted.limits.model_dump(exclude_none=True) if wanted.limits is not None else None

    async def make() -> str:
        with server.access.quotas.room(
            key, server.registry.promised(key.tenant), asked, server.registry.ending(key.tenant)
        ) as limits:
            session = await server.registry.create(
                key.tenant,
                device=wanted.device,
                default_dtype=wanted.default_dtype,
                limits=limits,
                ttl_s=wanted.ttl_s,
                seed=wanted.seed,
                durability=wanted.durability,
            )
        server.access.audit.note("session_created", session=session.id)
        return session.id

    made = await server.registry.repeats.once(key.tenant, idempotency_key, wanted.model_dump_json(), make)
    session = server.registry.get(made, key.tenant)
    response.headers["Location"] = f"{server.settings.root_path}/v1/sessions/{session.id}"
    return session.summary()


@router.get("", response_model=SessionList)
async def list_(server: TheServer, tenant: TheTenant) -> dict[str, Any]:
    """The sessions of this key, oldest first."""
    return {"sessions": [session.summary() for session in server.registry.of(tenant)]}


@router.get("/{session_id}", response_model=SessionDetail)
async def get(session: TheSession) -> dict[str, Any]:
    """A session, with counts and sizes of what it holds."""
    contents = await session.host.describe()  # which wakes it
    return session.summary() | {"contents": contents}


@router.get("/{session_id}/memory", response_model=MemoryView, response_model_exclude_unset=True)
async def memory(session: TheSession) -> dict[str, Any]:
    """What the session's tensors occupy, in bytes."""
    return await session.host.memory()


@router.delete("/{session_id}/memory/peak", response_model=MemoryView, response_model_exclude_unset=True)
async def reset_peak(session: TheSession) -> dict[str, Any]:
    """Forget the peak: from now on it is the most that is held from now on. Returns what was there before."""
    return await session.host.memory(reset_peak=True)


@router.delete("/{session_id}", status_code=204)
async def delete(server: TheServer, session: TheSession) -> None:
    """End a session and release what it holds. Its streams close with 4404."""
    await server.registry.delete(session)
    server.access.audit.note("session_deleted", session=session.id)
