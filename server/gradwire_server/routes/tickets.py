"""Tickets: how a web page opens a stream without a key in its URL."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request

from ..access import caller_of
from ..http.openapi import PROBLEMS
from ..models import TicketRequest, TicketView
from ..state import TheServer
from ..timestamps import timestamp

router = APIRouter(prefix="/v1/tickets", tags=["tickets"], responses=PROBLEMS)


@router.post("", status_code=201, response_model=TicketView)
async def issue(server: TheServer, request: Request, body: TicketRequest) -> dict[str, str]:
    """A ticket that opens one stream of one session, once, soon, for a web page of an allowed origin.

    The page opens ``/v1/sessions/{session}/stream?ticket=...``. The ticket is used up by being shown.
    """
    who = caller_of(request)
    session = server.registry.get(body.session, who.key.tenant)
    ticket, ttl = server.access.tickets.issue(who.key, session.id)
    server.access.audit.note("ticket_issued", session=session.id)
    return {"ticket": ticket, "session": session.id, "expires_at": timestamp(time.time() + ttl)}
