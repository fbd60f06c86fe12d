"""A profile of a session, recorded by the server while its programs run."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Body as BodyParameter

from ..http.activity_models import ProfileRequest, ProfileView
from ..http.openapi import PROBLEMS
from ..http.state import TheSession

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["sessions"], responses=PROBLEMS)


@router.post("/profile", operation_id="profileSession", summary="Profile a session", response_model=ProfileView)
async def record(session: TheSession, body: Annotated[ProfileRequest | None, BodyParameter()] = None) -> dict[str, Any]:
    """Record where the frames of the next seconds spend their time. Meanwhile they run op by op, without plans, which
    is slower and gives the same values.
    """
    wanted = body or ProfileRequest()
    return {"seconds": wanted.seconds, "flame": await session.host.profile(wanted.seconds)}
