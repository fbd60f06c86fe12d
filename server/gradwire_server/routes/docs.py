"""The description of the interface: the OpenAPI document, and a page that shows it and makes requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from fastapi import APIRouter, FastAPI, Request, Response

from ..http import static_files
from ..http.static_files import Document

router = APIRouter(include_in_schema=False)

_DOCUMENT: Final = "openapi_document"


def _encoded(app: FastAPI) -> Document:
    return Document(msgspec.json.encode(app.openapi()), "application/json")


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    state = request.app.state
    if not hasattr(state, _DOCUMENT):
        # In a thread, because it takes a second to describe hundreds of ops.
        setattr(state, _DOCUMENT, await asyncio.to_thread(_encoded, request.app))
    document: Document = getattr(state, _DOCUMENT)
    return document.response(request)


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
