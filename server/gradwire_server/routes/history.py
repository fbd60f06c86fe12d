"""Time travel: checkpoints, rewinds, forks, looks at the past, and the search for the first bad value."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Path, Query, Request, Response

from gradwire_protocol.errors import InvalidRequest
from gradwire_protocol.frames import MAX_NAME_CHARS

from ..auth import caller_of
from ..http.models import (
    CheckpointRequest,
    CheckpointView,
    ForkRequest,
    HistoryView,
    PastRequest,
    RewindRequest,
    RewoundView,
    SearchView,
    SessionView,
)
from ..http.openapi import PROBLEMS, RECORDING_RESPONSE
from ..http.state import Server, TheServer, TheSession
from ..http.tensor_formats import TAR
from ..sessions import forking
from ..sessions.session import Session
from .bodies import ChunkedBody

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["history"], responses=PROBLEMS)

CheckpointPath = Annotated[
    str, Path(min_length=1, max_length=MAX_NAME_CHARS, description="Name of a checkpoint", examples=["before"])
]
RepeatKey = Annotated[str | None, Header(min_length=1, max_length=200)]


@router.get(
    "/history", operation_id="getHistory", summary="Get the kept history of a session", response_model=HistoryView
)
async def history(session: TheSession) -> dict[str, Any]:
    """Get how far back a session can be seen, and its checkpoints. Requires a journal."""
    return await session.host.travel("history", {})


@router.get(
    "/history/search", operation_id="searchHistory", summary="Find the first bad value", response_model=SearchView
)
async def search(
    server: TheServer,
    session: TheSession,
    request: Request,
    value: Annotated[Literal["nan", "inf", "nonfinite"], Query(description="The kind of value.")] = "nan",
    name: Annotated[
        str,
        Query(
            max_length=MAX_NAME_CHARS,
            description="Look only at the tensor that has this name after each frame. Default: at all results.",
        ),
    ] = "",
) -> dict[str, Any]:
    """Replay what is kept of the session's past, and tell which frame, op and line made the first NaN or infinity.

    The session goes on meanwhile. The replay counts as a session for the quotas of the key.
    """
    with _quota(server, request, session):
        return {"found": await session.host.search(value, name)}


@router.get(
    "/history/recording",
    operation_id="getRecording",
    summary="Get the history as a file",
    response_class=Response,
    responses=RECORDING_RESPONSE,
)
async def recording(server: TheServer, session: TheSession, request: Request) -> Response:
    """Get what is kept of the session's past as a file that ``gradwire sessions replay`` runs again on another machine
    or version, and compares bit for bit. The replay that makes it counts as a session for the quotas of the key."""
    with _quota(server, request, session):
        file = await session.host.recorded()
    server.metrics.rest_out.inc(len(file))
    server.access.audit.note("session_exported", session=session.id, bytes_out=len(file))
    name = f'attachment; filename="{session.id}.recording.tar"'
    return ChunkedBody([file], TAR, {"Content-Disposition": name})


@router.post(
    "/checkpoints",
    operation_id="createCheckpoint",
    summary="Keep a state of a session",
    status_code=201,
    response_model=CheckpointView,
)
async def checkpoint(server: TheServer, session: TheSession, body: CheckpointRequest) -> dict[str, Any]:
    """Keep the state of a session under a name, on disk. While there is a checkpoint, the journal since the oldest one
    is kept, too."""
    made = await session.host.travel("checkpoint", {"name": body.name})
    server.access.audit.note("checkpoint_created", session=session.id, about=body.name)
    return made


@router.delete("/checkpoints/{name}", operation_id="deleteCheckpoint", summary="Delete a checkpoint", status_code=204)
async def forget(server: TheServer, session: TheSession, name: CheckpointPath) -> None:
    """Delete a checkpoint. The session does not change."""
    await session.host.travel("forget", {"name": name})
    server.access.audit.note("checkpoint_deleted", session=session.id, about=name)


@router.post("/rewind", operation_id="rewindSession", summary="Return to a checkpoint", response_model=RewoundView)
async def rewind(server: TheServer, session: TheSession, body: RewindRequest) -> dict[str, Any]:
    """Return a session to a checkpoint. Tensors that were made since give an error from then on, and what was released
    since stays released. Clients stay connected, and go on with their next frame."""
    found = await session.host.travel("rewind", {"name": body.checkpoint, "frame": body.frame})
    server.access.audit.note("session_rewound", session=session.id, about=body.checkpoint)
    return found


@router.post("/fork", operation_id="forkSession", summary="Fork a session", status_code=201, response_model=SessionView)
async def fork(
    server: TheServer,
    request: Request,
    response: Response,
    session: TheSession,
    body: Annotated[ForkRequest | None, Body()] = None,
    idempotency_key: RepeatKey = None,
) -> dict[str, Any]:
    """Create a session that begins as this one is, or was after a frame: with its tensors, graph, ids, names, clients
    and random state. Both go their own way from then on. A past state requires a journal.

    A repeated request with the same ``Idempotency-Key`` returns the session of the first one.
    """
    asked = body or ForkRequest()
    _check_alone(server)

    async def make() -> str:
        with _quota(server, request, session) as limits:
            made = await forking.fork(server.registry, session, limits, asked.frame, asked.ttl_s)
        server.access.audit.note("session_forked", session=made.id, about=session.id)
        return made.id

    return await _made(server, session, response, idempotency_key, f"fork {session.id} {asked.model_dump_json()}", make)


@router.post(
    "/past", operation_id="openPast", summary="Look at a past state", status_code=201, response_model=SessionView
)
async def past(
    server: TheServer,
    request: Request,
    response: Response,
    session: TheSession,
    body: PastRequest,
    idempotency_key: RepeatKey = None,
) -> dict[str, Any]:
    """Create a session that shows this one as it was after a frame: its tensors, graph and memory. It is in memory
    only, and what is computed in it changes nothing of this one. Delete it after use. Requires a journal.

    A repeated request with the same ``Idempotency-Key`` returns the session of the first one.
    """

    _check_alone(server)

    async def make() -> str:
        with _quota(server, request, session) as limits:
            return (await forking.look_back(server.registry, session, limits, body.frame)).id

    return await _made(server, session, response, idempotency_key, f"past {session.id} {body.frame}", make)


@router.put("/past", operation_id="movePast", summary="Look at another past state", response_model=PastRequest)
async def move(session: TheSession, body: PastRequest) -> dict[str, Any]:
    """Have a session that shows another one's past show another frame. To later frames it goes on from where it is."""
    return await session.host.travel("advance", {"frame": body.frame})


def _check_alone(server: Server) -> None:
    """Check that new sessions may be made here.

    Raises:
        InvalidRequest: on a worker of a fleet, where the gateway places sessions.
    """
    if server.access.passes is not None:
        raise InvalidRequest(
            "sessions of a fleet are neither forked nor shown at a past frame, since its gateway places all sessions; "
            "checkpoints, rewinds and searches work, and export with import copies tensors"
        )


def _quota(server: Server, request: Request, session: Session) -> Any:
    """Reserve quota for another session that is as large as this one may be."""
    key, registry = caller_of(request).key, server.registry
    asked = {"max_session_bytes": session.limits.max_session_bytes}
    return server.access.quotas.reserve(key, registry.granted(key.tenant), asked, registry.ending(key.tenant))


async def _made(
    server: Server, session: Session, response: Response, key: str | None, request: str, make: Any
) -> dict[str, Any]:
    made = await server.registry.repeats.once(session.tenant, key, request, make)
    response.headers["Location"] = f"{server.settings.root_path}/v1/sessions/{made}"
    return server.registry.get(made, session.tenant).summary()
