"""REST shortcuts for backward and grad. Each builds one frame."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gradwire_protocol.frames import Value

from ..http import shortcut_frames
from ..http.models import BackwardReply, BackwardRequest, GradReply, GradRequest
from ..http.openapi import PROBLEMS
from ..http.state import TheServer, TheSession
from .bodies import as_json
from .submit import submit, succeed

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["gradients"], responses=PROBLEMS)


@router.post("/backward", operation_id="backward", summary="Run backward", response_model=BackwardReply)
async def backward(server: TheServer, session: TheSession, body: BackwardRequest) -> Response:
    """Run backward: accumulate gradients into the ``grad`` of leaves."""
    retain = body.create_graph if body.retain_graph is None else body.retain_graph
    built = shortcut_frames.backward(
        body.tensors, body.gradients, body.inputs, retain, body.create_graph, body.grads_of
    )
    reply = succeed((await submit(server, session, built))[0])
    return as_json({"grads": [_view(value) for value in reply.values]})


@router.post("/grad", operation_id="grad", summary="Compute gradients", response_model=GradReply)
async def grad(server: TheServer, session: TheSession, body: GradRequest) -> Response:
    """Compute gradients of outputs with respect to inputs, without changing any ``grad``."""
    retain = body.create_graph if body.retain_graph is None else body.retain_graph
    keep = body.keep or body.create_graph
    built = shortcut_frames.grad(
        body.outputs, body.inputs, body.grad_outputs, retain, body.create_graph, body.allow_unused, keep
    )
    reply = succeed((await submit(server, session, built))[0])
    ids = [reply.first + i for i in range(reply.made)] if keep else None
    return as_json({"gradients": [_view(value) for value in reply.values], "ids": ids})


def _view(value: Value) -> dict[str, object] | None:
    """A value as JSON data; null for a missing gradient."""
    return {"dtype": value.dtype, "shape": value.shape, "values": value.values} if value.dtype else None
