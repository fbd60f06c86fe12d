"""Groups of sessions, for collectives: open, list, close."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from gradwire_protocol.errors import NotFound
from gradwire_protocol.ops.collectives import GROUP_LENGTH

from ..groups.rendezvous import Joining
from ..http.models import GroupList, GroupRequest, GroupView
from ..http.openapi import PROBLEMS
from ..http.state import TheServer, TheSession

router = APIRouter(prefix="/v1/sessions/{session_id}/groups", tags=["groups"], responses=PROBLEMS)

GroupName = Annotated[str, Path(min_length=1, max_length=GROUP_LENGTH, description="Name of a group")]


@router.post("", operation_id="openGroup", summary="Open a group", status_code=201, response_model=GroupView)
async def open_(server: TheServer, session: TheSession, body: GroupRequest) -> dict[str, Any]:
    """Join a group of sessions of this tenant as one of its ranks. Answers when all ranks have come.

    From then on all ranks may run collectives of the group. A session that opens a group again leaves the one that it
    had under this name.
    """
    joining = Joining(
        session.tenant, body.group, body.rank, body.world_size, body.timeout_s, session.id, session.host,
        server.settings.nccl,
    )  # fmt: skip
    session.opening += 1
    try:
        await server.registry.rendezvous.left(session.id, "it opens the group again", body.group)
        return await server.registry.rendezvous.join(joining)
    finally:
        session.opening -= 1


@router.get("", operation_id="listGroups", summary="List open groups", response_model=GroupList)
async def list_(session: TheSession) -> dict[str, Any]:
    """List the groups that the session has open, with what went over the wire."""
    return {"groups": await session.host.groups()}


@router.delete("/{group}", operation_id="closeGroup", summary="Close a group", status_code=204)
async def close(server: TheServer, session: TheSession, group: GroupName) -> None:
    """Leave a group. Other ranks get what this one has sent; their next collective that needs it fails."""
    if all(row["group"] != group for row in await session.host.groups()):
        raise NotFound(f"the session has no open group {group!r}")
    await server.registry.rendezvous.left(session.id, "it closed the group", group)
    await session.host.close_group(group)
