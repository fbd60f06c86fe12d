"""Tickets: a web page opens a stream with a ticket instead of a key in the URL."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request

from ..auth import caller_of
from ..http.models import TicketRequest, TicketView
from ..http.openapi import PROBLEMS
from ..http.state import TheServer
from ..settings.timestamps import timestamp

router = APIRouter(prefix="/v1/tickets", tags=["tickets"], responses=PROBLEMS)


@router.post("", operation_id="createTicket", summary="Create a ticket", status_code=201, response_model=TicketView)
async def issue(server: TheServer, request: Request, body: TicketRequest) -> dict[str, str]:
    """Issue a ticket. It opens one stream of one session, within seconds, for a web page of an allowed origin.

    The page opens ``/v1/sessions/{session}/stream?ticket=...``. A ticket is single-use: any attempt consumes it.
    """
    who = caller_of(request)
    await (server.redirector or server.registry).find(body.session, who.key.tenant)
    ticket, ttl = server.access.tickets.issue(who.key, body.session)
    server.access.audit.note("ticket_issued", session=body.session)
    return {"ticket": ticket, "session": body.session, "expires_at": timestamp(time.time() + ttl)}
