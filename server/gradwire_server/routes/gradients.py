"""Backward and grad as calls of their own, for people with a shell. Each is one frame."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gradwire_protocol.frames import Value

from .. import framebuild
from ..http.openapi import PROBLEMS
from ..models import BackwardReply, BackwardRequest, GradReply, GradRequest
from ..state import TheServer, TheSession
from .bodies import as_json
from .submit import submit, succeed

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["gradients"], responses=PROBLEMS)


@router.post("/backward", response_model=BackwardReply)
async def backward(server: TheServer, session: TheSession, body: BackwardRequest) -> Response:
    """Accumulate gradients of tensors into the ``grad`` of the leaves they depend on."""
    retain = body.create_graph if body.retain_graph is None else body.retain_graph
    built = framebuild.backward(body.tensors, body.gradients, body.inputs, retain, body.create_graph, body.grads_of)
    reply = succeed((await submit(server, session, built))[0])
    return as_json({"grads": [_view(value) for value in reply.values]})


@router.post("/grad", response_model=GradReply)
async def grad(server: TheServer, session: TheSession, body: GradRequest) -> Response:
    """Gradients of outputs with respect to inputs, leaving every ``grad`` as it is."""
    retain = body.create_graph if body.retain_graph is None else body.retain_graph
    keep = body.keep or body.create_graph
    built = framebuild.grad(
        body.outputs, body.inputs, body.grad_outputs, retain, body.create_graph, body.allow_unused, keep
    )
    reply = succeed((await submit(server, session, built))[0])
    ids = [reply.first + i for i in range(reply.made)] if keep else None
    return as_json({"gradients": [_view(value) for value in reply.values], "ids": ids})


def _view(value: Value) -> dict[str, object] | None:
    """A value as it is shown; null for a gradient that is not there."""
    return {"dtype": value.dtype, "shape": value.shape, "values": value.values} if value.dtype else None
