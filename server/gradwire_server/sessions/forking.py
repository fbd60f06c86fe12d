"""New sessions that begin as another one is, or was."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import msgspec
import structlog

from gradwire_engine.snapshot import NotImageable
from gradwire_protocol.errors import InvalidRequest

from ..hosting.runner import How
from ..hosting.time_travel import PastPlace
from ..settings.session_spec import SessionSpec
from .session import Session

if TYPE_CHECKING:
    from .sessions import SessionRegistry

PAST_TTL_S = 600.0
"""A look at the past expires after this time without use, if its session would live longer."""

log = structlog.get_logger("gradwire.sessions")


async def fork(
    registry: SessionRegistry, session: Session, limits: dict[str, int] | None, frame: int | None, ttl_s: float | None
) -> Session:
    """A session that begins as ``session`` is, or was after a frame, and goes its own way.

    Args:
        limits: what it was granted.
        ttl_s: by default that of ``session``.

    Raises:
        InvalidRequest: when the session is in a group, has transient state, or a frame is asked of one without journal.
        NotFound: when the frame is not kept.
        JournalDamaged: when a file is damaged.
        LimitExceeded, TooManyRequests, Unavailable: as ``SessionRegistry.create``.
    """
    now = await session.host.travel("alone", {})
    if frame is None or frame == now["frame"]:
        try:
            image = await session.host.image()
        except NotImageable as error:
            raise InvalidRequest(f"the session cannot be forked at this moment: {error.message}") from None
    else:
        image = (await _place(session, frame)).encode()
    spec = _like(session.spec, limits, ttl_s)
    made = await registry.add(spec, "fork", image)
    log.info("session forked", session=spec.id, source=session.id, frame=frame)
    return made


async def look_back(registry: SessionRegistry, session: Session, limits: dict[str, int] | None, frame: int) -> Session:
    """A session that shows ``session`` as it was after a frame. It is in memory only.

    Raises:
        InvalidRequest: when the session has no journal.
        NotFound, JournalDamaged, TooManyRequests, Unavailable: as :func:`fork`.
    """
    place = await _place(session, frame)
    spec = msgspec.structs.replace(
        _like(session.spec, limits, min(session.spec.ttl_s, PAST_TTL_S)), durability="none", past_of=session.id
    )
    how: How = "past"
    return await registry.add(spec, how, place.encode())


async def _place(session: Session, frame: int) -> PastPlace:
    there = await session.host.travel("place", {})
    return PastPlace(there["folder"], frame)


def _like(spec: SessionSpec, limits: dict[str, int] | None, ttl_s: float | None) -> SessionSpec:
    """The parameters of a new session that is like another one."""
    return msgspec.structs.replace(
        spec, id="s_" + secrets.token_urlsafe(12), created=time.time(), limits=spec.limits | (limits or {}),
        ttl_s=spec.ttl_s if ttl_s is None else ttl_s, past_of="",
    )  # fmt: skip
