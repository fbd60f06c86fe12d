"""The description of the interface: the OpenAPI document, and a page that shows it and makes requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from fastapi import APIRouter, FastAPI, Request, Response

from ..http import static_files
from ..http.openapi import document
from ..http.static_files import Document

router = APIRouter(include_in_schema=False)


def _encoded(app: FastAPI, typed_ops: bool) -> Document:
    found = app.openapi() if typed_ops else document(app, typed_ops=False)
    return Document(msgspec.json.encode(found), "application/json")


@router.get("/openapi.json")
async def openapi(request: Request, ops: bool = True) -> Response:
    """The OpenAPI document: with a schema for each op, or for ``ops=false`` with one for all, a fifth of the size."""
    known: dict[bool, Document] = request.app.state.openapi_documents
    if ops not in known:
        # In a thread, because it takes a second to describe hundreds of ops.
        known[ops] = await asyncio.to_thread(_encoded, request.app, ops)
    return known[ops].response(request)


@router.get("/docs")
async def page(request: Request) -> Response:
    """Swagger UI."""
    return static_files.page().response(request)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        return (await asyncio.to_thread(static_files.file, name)).response(request)

    return serve


for _name in static_files.FILES:
    router.add_api_route(f"/docs/{_name}", _file(_name))
