"""Tensors: list, read, write and release, in the media type of the headers."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response

from gradwire_protocol.errors import InvalidRequest, ShapeError, UnknownTensor
from gradwire_protocol.frames import MAX_ID, MAX_NAME_CHARS, Value

from ..hosting.jobs import Buffers
from ..http import shortcut_frames
from ..http.decoding import decoded_limit
from ..http.models import TensorList, TensorStored
from ..http.openapi import PROBLEMS, TENSOR_REQUEST, TENSOR_RESPONSE
from ..http.state import Server, TensorId, TheServer, TheSession
from ..http.tensor_formats import (
    DTYPE_HEADER,
    FORMATS,
    JSON,
    RAW,
    SHAPE_HEADER,
    Incoming,
    incoming,
    is_nested,
    negotiate,
    safetensors_header,
    shape_text,
)
from ..sessions.session import Session
from .bodies import ChunkedBody, as_json, read_body
from .submit import submit, succeed, undefined

PAGE: Final = 1000

router = APIRouter(prefix="/v1/sessions/{session_id}/tensors", tags=["tensors"], responses=PROBLEMS)


@router.get("", operation_id="listTensors", summary="List tensors", response_model=TensorList)
async def list_(
    session: TheSession,
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="Only ids above this one.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10 * PAGE, description="Maximum number of tensors in a page.")] = PAGE,
    tensor: Annotated[
        list[Annotated[int, Query(ge=1, le=MAX_ID)]] | None,
        Query(max_length=PAGE, description="Only these tensors; missing ones are left out."),
    ] = None,
) -> Response:
    """List the session's live tensors without their values, in pages by ascending id."""
    rows = await session.host.tensors(after, limit + 1, tensor)  # the extra row shows whether there is a next page
    page = rows[:limit]
    return as_json({"tensors": page, "next": page[-1]["id"] if len(rows) > limit else None})


@router.get(
    "/{tensor_id}", operation_id="getTensor", summary="Get a tensor", response_class=Response, responses=TENSOR_RESPONSE
)
async def get(
    server: TheServer,
    session: TheSession,
    tensor_id: TensorId,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Get a tensor's values. ``Accept`` selects JSON, raw little-endian bytes in row-major order, or safetensors."""
    form = negotiate(accept, FORMATS)
    reply, buffers = await submit(server, session, shortcut_frames.read(tensor_id, human=form == JSON))
    value = succeed(reply).values[0]
    if not value.dtype:
        raise undefined(tensor_id)
    response = rendered(form, {"id": tensor_id}, value, buffers)
    server.metrics.rest_out.inc(int(response.headers["content-length"]))
    return response


def rendered(form: str, tensor: dict[str, Any], value: Value, buffers: Buffers) -> Response:
    """A value in a media type. ``tensor`` tells in JSON whose value it is."""
    if form == JSON:
        facts = tensor | {"dtype": value.dtype, "shape": value.shape, "values": value.values}
        return as_json(facts, headers={"Vary": "Accept"})
    headers = {DTYPE_HEADER: value.dtype, SHAPE_HEADER: shape_text(value.shape), "Vary": "Accept"}
    data = buffers[0]
    if form == RAW:
        return ChunkedBody([data], form, headers)
    return ChunkedBody([safetensors_header(value.dtype, value.shape, data.nbytes), data], form, headers)


@router.put(
    "/{tensor_id}",
    operation_id="putTensor",
    summary="Create or overwrite a tensor",
    response_model=TensorStored,
    responses={201: {"model": TensorStored, "description": "Created"}},
    openapi_extra=TENSOR_REQUEST,
)
async def put(
    server: TheServer,
    session: TheSession,
    tensor_id: TensorId,
    request: Request,
    content_type: Annotated[str, Header(include_in_schema=False)] = JSON,
    requires_grad: Annotated[bool, Query(description="Whether a new tensor requires a gradient.")] = False,
    name: Annotated[
        str | None, Query(min_length=1, max_length=MAX_NAME_CHARS, description="A name for the tensor.")
    ] = None,
) -> Response:
    """Create or overwrite a tensor. A new id must be below 2**32. The values of an existing tensor are replaced in
    place, without recording a gradient, and must have the same shape; its dtype remains."""
    new = await received(server, session, request, content_type)
    known = await _shape_of(server, session, tensor_id)
    if known is None:
        if shortcut_frames.owner(tensor_id) != shortcut_frames.PEOPLE:
            raise InvalidRequest(f"the id {tensor_id} belongs to a client's range; use an id below 2**32")
        frame = shortcut_frames.upload(tensor_id, new, session.device, requires_grad, name)
    elif known != list(new.shape):
        raise ShapeError(f"tensor {tensor_id} has shape {known}, the body {list(new.shape)}; delete the tensor first")
    else:
        frame = shortcut_frames.overwrite(tensor_id, new, session.device, name)
    succeed((await submit(server, session, frame))[0])
    dtype = new.dtype.name
    if known is not None:
        for row in await session.host.tensors(tensor_id - 1, 1, [tensor_id]):
            dtype = row["dtype"]
    stored = TensorStored(id=tensor_id, dtype=dtype, shape=list(new.shape), created=known is None)
    return as_json(stored.model_dump(), status=201 if known is None else 200)


async def received(server: Server, session: Session, request: Request, content_type: str) -> Incoming:
    """The tensor in a request's body, decoded in a thread if it is large JSON."""
    body = await read_body(request)
    server.metrics.rest_in.inc(len(body))
    most = decoded_limit(server.settings, session)
    return await server.decoding.run(
        session.tenant, len(body) if is_nested(content_type) else 0,
        lambda: incoming(content_type, request.headers, body, session.default_dtype, most),
    )  # fmt: skip


async def _shape_of(server: Server, session: Session, tensor_id: int) -> list[int] | None:
    """The tensor's shape, or ``None`` if it does not exist."""
    try:
        reply, _ = await submit(server, session, shortcut_frames.probe(tensor_id))
        shape: list[int] = succeed(reply).values[0].values
        return shape
    except UnknownTensor:
        return None


@router.delete("/{tensor_id}", operation_id="deleteTensor", summary="Release a tensor", status_code=204)
async def delete(server: TheServer, session: TheSession, tensor_id: TensorId) -> None:
    """Release a tensor. Graphs that use it keep it alive."""
    reply, _ = await submit(server, session, shortcut_frames.probe(tensor_id, release=True))
    if reply.refused is not None or any(problem.code == UnknownTensor.code for problem in reply.errors):
        succeed(reply)
