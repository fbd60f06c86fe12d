"""The routes' dependencies: the server object, the tenant and the session of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path
from starlette.requests import HTTPConnection, Request
from structlog.contextvars import bind_contextvars

from gradwire_protocol.frames import MAX_ID, MAX_NAME_CHARS

from ..auth import AccessControl
from ..observability.metrics import Metrics
from ..observability.tracing import Tracing
from ..sessions.session import Session
from ..sessions.sessions import SessionRegistry
from ..settings.settings import Settings
from .activity import Activity
from .backlog import Backlogs
from .decoding import Decoding
from .redirector import Redirector


@dataclass(frozen=True)
class Server:
    """The parts of a running server. ``redirector``: of a gateway."""

    settings: Settings
    access: AccessControl
    metrics: Metrics
    registry: SessionRegistry
    backlogs: Backlogs
    activity: Activity
    tracing: Tracing | None = None
    decoding: Decoding = field(default_factory=Decoding)
    redirector: Redirector | None = None


def server_of(connection: HTTPConnection) -> Server:
    """The server of this request or stream."""
    found: Server = connection.app.state.server
    return found


def tenant_of(connection: HTTPConnection) -> str:
    """The tenant of this request or stream."""
    tenant: str = connection.state.tenant
    return tenant


async def _server(request: Request) -> Server:
    return server_of(request)


async def _tenant(request: Request) -> str:
    return tenant_of(request)


SessionId = Annotated[str, Path(description="Id of a session", examples=["s_3vN0uZ1rWk2yQ8aB"])]
TensorId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of a tensor")]
TensorName = Annotated[
    str,
    Path(min_length=1, max_length=MAX_NAME_CHARS, description="Name of a tensor; one with a slash only frames can use"),
]


async def _session(session_id: SessionId, request: Request) -> Session:
    found = server_of(request).registry.get(session_id, tenant_of(request))
    bind_contextvars(session=found.id)
    return found


TheServer = Annotated[Server, Depends(_server)]
TheTenant = Annotated[str, Depends(_tenant)]
TheSession = Annotated[Session, Depends(_session)]
