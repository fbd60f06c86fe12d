"""Sessions: create, list, look at, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from ..models import MemoryView, SessionDetail, SessionList, SessionRequest, SessionView
from ..openapi import PROBLEMS
from ..state import TheServer, TheSession, TheTenant

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], responses=PROBLEMS)


@router.post("", status_code=201, response_model=SessionView)
async def create(
    server: TheServer,
    tenant: TheTenant,
    response: Response,
    body: Annotated[SessionRequest | None, Body()] = None,
) -> dict[str, Any]:
    """Start a session: a space of tensors and their graph, shared by all its clients, visible to one API key."""
    wanted = body or SessionRequest()
    session = await server.registry.create(
        tenant,
        device=wanted.device,
        default_dtype=wanted.default_dtype,
        limits=wanted.limits.model_dump(exclude_none=True) if wanted.limits is not None else None,
        ttl_s=wanted.ttl_s,
        seed=wanted.seed,
    )
    response.headers["Location"] = f"/v1/sessions/{session.id}"
    return session.summary()


@router.get("", response_model=SessionList)
async def list_(server: TheServer, tenant: TheTenant) -> dict[str, Any]:
    """The live sessions of this key, oldest first."""
    return {"sessions": [session.summary() for session in server.registry.of(tenant)]}


@router.get("/{session_id}", response_model=SessionDetail)
async def get(session: TheSession) -> dict[str, Any]:
    """A session, with counts and sizes of what it holds."""
    return session.summary() | {"contents": await session.host.describe()}


@router.get("/{session_id}/memory", response_model=MemoryView)
async def memory(session: TheSession) -> dict[str, int]:
    """What the session's tensors occupy, in bytes."""
    return await session.host.memory()


@router.delete("/{session_id}/memory/peak", response_model=MemoryView)
async def reset_peak(session: TheSession) -> dict[str, int]:
    """Forget the peak: from now on it is the most that is held from now on. Returns what was there before."""
    return await session.host.memory(reset_peak=True)


@router.delete("/{session_id}", status_code=204)
async def delete(server: TheServer, session: TheSession) -> None:
    """End a session and release what it holds. Its streams close with 4404."""
    await server.registry.delete(session)
