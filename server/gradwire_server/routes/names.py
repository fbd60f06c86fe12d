"""Named tensors: list, read, write and release, as :mod:`.tensors` does by id."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request, Response

from gradwire_protocol.errors import ShapeError, UnknownTensor
from gradwire_protocol.frames import MAX_NAME_CHARS

from ..http import shortcut_frames
from ..http.models import NamedStored, NameList
from ..http.openapi import NAMED_RESPONSE, PROBLEMS, TENSOR_REQUEST
from ..http.state import TensorName, TheServer, TheSession
from ..http.tensor_formats import FORMATS, JSON, negotiate
from .bodies import as_json
from .submit import submit, succeed, undefined
from .tensors import received, rendered

PAGE: Final = 1000

router = APIRouter(prefix="/v1/sessions/{session_id}/names", tags=["names"], responses=PROBLEMS)


@router.get("", operation_id="listNames", summary="List named tensors", response_model=NameList)
async def list_(
    session: TheSession,
    after: Annotated[str, Query(max_length=MAX_NAME_CHARS, description="Only names above this one.")] = "",
    limit: Annotated[int, Query(ge=1, le=10 * PAGE, description="Maximum number of tensors in a page.")] = PAGE,
) -> Response:
    """List the tensors that have a name, without their values, in pages by name."""
    rows = await session.host.names(after, limit + 1)  # the extra row shows whether there is a next page
    page = rows[:limit]
    return as_json({"names": page, "next": page[-1]["name"] if len(rows) > limit else None})


@router.get(
    "/{name}",
    operation_id="getNamedTensor",
    summary="Get a named tensor",
    response_class=Response,
    responses=NAMED_RESPONSE,
)
async def get(
    server: TheServer,
    session: TheSession,
    name: TensorName,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Get the values of the tensor that has this name, as ``getTensor`` does by id."""
    form = negotiate(accept, FORMATS)
    reply, buffers = await submit(server, session, shortcut_frames.read_named(name, human=form == JSON))
    value = succeed(reply).values[0]
    if not value.dtype:
        raise undefined(name)
    response = rendered(form, {"name": name}, value, buffers)
    server.metrics.rest_out.inc(int(response.headers["content-length"]))
    return response


@router.put(
    "/{name}",
    operation_id="putNamedTensor",
    summary="Create or overwrite a named tensor",
    response_model=NamedStored,
    responses={201: {"model": NamedStored, "description": "Created"}},
    openapi_extra=TENSOR_REQUEST,
)
async def put(
    server: TheServer,
    session: TheSession,
    name: TensorName,
    request: Request,
    content_type: Annotated[str, Header(include_in_schema=False)] = JSON,
    requires_grad: Annotated[bool, Query(description="Whether a new tensor requires a gradient.")] = False,
) -> Response:
    """Create a tensor with this name, or replace the values of the one that has it: in place, without recording a
    gradient. The shape must be the same; its dtype remains."""
    new = await received(server, session, request, content_type)
    row = next(iter(await session.host.names("", 1, [name])), None)
    if row is None:
        frame = shortcut_frames.upload_named(name, new, session.device, requires_grad)
    elif row["shape"] != list(new.shape):
        raise ShapeError(f"tensor {name!r} has shape {row['shape']}, the body {list(new.shape)}; delete the name first")
    else:
        frame = shortcut_frames.overwrite_named(name, new, session.device)
    succeed((await submit(server, session, frame))[0])
    dtype = new.dtype.name if row is None else row["dtype"]
    stored = NamedStored(name=name, dtype=dtype, shape=list(new.shape), created=row is None)
    return as_json(stored.model_dump(), status=201 if row is None else 200)


@router.delete("/{name}", operation_id="deleteName", summary="Remove a name", status_code=204)
async def delete(server: TheServer, session: TheSession, name: TensorName) -> None:
    """Remove a name. A tensor that has an id too, or that a graph uses, stays."""
    reply, _ = await submit(server, session, shortcut_frames.forget_name(name))
    if reply.refused is not None or any(problem.code == UnknownTensor.code for problem in reply.errors):
        succeed(reply)
