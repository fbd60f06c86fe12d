"""What the routes share: the one object behind ``app.state.server``, and who a request belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path
from starlette.requests import HTTPConnection, Request
from structlog.contextvars import bind_contextvars

from gradwire_protocol.frames import MAX_ID

from .access import Access
from .decoding import Decoding
from .metrics import Metrics
from .sessions import Registry, Session
from .settings import Settings
from .streams.backlog import Backlogs
from .tracing import Tracing


@dataclass(frozen=True)
class Server:
    """The parts of a running server."""

    settings: Settings
    access: Access
    metrics: Metrics
    registry: Registry
    backlogs: Backlogs
    tracing: Tracing | None = None
    decoding: Decoding = field(default_factory=Decoding)


def server_of(connection: HTTPConnection) -> Server:
    """The server that this request or stream came to."""
    found: Server = connection.app.state.server
    return found


def tenant_of(connection: HTTPConnection) -> str:
    """The tenant whose key came with this request or stream."""
    tenant: str = connection.state.tenant
    return tenant


async def _server(request: Request) -> Server:
    return server_of(request)


async def _tenant(request: Request) -> str:
    return tenant_of(request)


SessionId = Annotated[str, Path(description="Id of a session", examples=["s_3vN0uZ1rWk2yQ8aB"])]
TensorId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of a tensor")]


async def _session(session_id: SessionId, request: Request) -> Session:
    found = server_of(request).registry.get(session_id, tenant_of(request))
    bind_contextvars(session=found.id)
    return found


TheServer = Annotated[Server, Depends(_server)]
TheTenant = Annotated[str, Depends(_tenant)]
TheSession = Annotated[Session, Depends(_session)]
