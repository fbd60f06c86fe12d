"""How a session opens a group on the server, and closes it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final
from urllib.parse import quote

from gradwire_protocol.errors import ArgumentError, NotFound, SessionGone

from .._core.session.session import Session
from .._core.wire import embedded_server

ANSWER_S: Final = 30.0
"""How long an answer may take beyond the time in which the others may come."""


def join(session: Session, name: str, rank: int, world_size: int, timeout: timedelta) -> None:
    """Open the group in this session as one of its ranks.

    Raises:
        ArgumentError: on an embedded server that belongs to this program alone: no other rank can come there.
    """
    if embedded_server.own(session.url):
        raise ArgumentError(
            f"rank {rank} of {world_size} computes on an embedded server of its own, where the other ranks cannot "
            "meet it: set GRADWIRE_URL for all of them, or start them with `gradwire run --nproc`"
        )
    body = {"group": name, "rank": rank, "world_size": world_size, "timeout_s": timeout.total_seconds()}
    session.rest.post(f"/v1/sessions/{session.id}/groups", body, timeout.total_seconds() + ANSWER_S)


def leave(session: Session, name: str) -> None:
    """Close the group in this session."""
    with suppress(NotFound, SessionGone):  # the server has closed it already
        session.rest.delete(f"/v1/sessions/{session.id}/groups/{quote(name, safe='')}")
