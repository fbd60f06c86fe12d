"""The op table as JSON, with an ETag for caching."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Response

from gradwire_protocol import ops as _ops  # noqa: F401  (fills the table)
from gradwire_protocol import record_schemas
from gradwire_protocol.frames import PROTOCOL_VERSION
from gradwire_protocol.table import TABLE, Op

from ..http.models import DeclaredOps
from ..http.openapi import PROBLEMS

router = APIRouter(prefix="/v1/ops", tags=["ops"], responses=PROBLEMS)


@router.get(
    "",
    operation_id="listOps",
    summary="List ops",
    response_model=DeclaredOps,
    responses={304: {"description": "The table with this ETag is current"}},
)
async def table(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """List all ops with signature, parameters, documentation and gradient."""
    body, tag = encoded()
    headers = {"ETag": tag, "Cache-Control": "private, max-age=0, must-revalidate"}
    known = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@cache
def encoded() -> tuple[bytes, str]:
    """The table as JSON, and its ETag."""
    rows = [describe(TABLE[name]) for name in sorted(TABLE) if not TABLE[name].internal]
    body = msgspec.json.encode({"protocol": PROTOCOL_VERSION, "ops": rows})
    return body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def describe(op: Op) -> dict[str, Any]:
    """One row of the table as JSON data."""
    params = [
        {
            "name": param.name,
            "type": param.describe().partition(": ")[2].partition(" = ")[0],
            "kind": param.kind.value,
            "required": param.required,
            "default": record_schemas.plain(param.default),
            "differentiable": param.name in op.differentiable,
        }
        for param in op.params
    ]
    return {
        "name": op.name,
        "family": op.family,
        "signature": op.signature,
        "doc": op.doc,
        "params": params,
        "schema": record_schemas.arguments(op),
        "results": op.results,
        "differentiable": op.grad_fn is not None,
        "grad_fn": op.grad_fn,
        "in_place": op.mutates is not None,
        "base": op.base.name if op.base is not None else None,
        "random": op.random,
        "dynamic": op.dynamic,
        "control": op.control,
    }
