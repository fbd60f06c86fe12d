"""The manual, for everybody: it says nothing about this server that its source does not say."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from gradwire_protocol.errors import NotFound

from ..http.manual_site import NOT_BUILT, SECURITY_HEADERS, Manual
from ..http.static_files import Document

router = APIRouter(include_in_schema=False)
_manual = Manual()
_not_built = Document(NOT_BUILT, "text/html; charset=utf-8", SECURITY_HEADERS)


@router.get("/manual")
async def start(request: Request) -> Response:
    """Leads to the start page, below which relative links of pages work."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}/manual/", headers=SECURITY_HEADERS)


@router.get("/manual/{path:path}")
async def file(request: Request, path: str) -> Response:
    """A page or another file of the site.

    Raises:
        NotFound: when the site has no such file.
    """
    found = await asyncio.to_thread(_manual.find, path)
    if found is not None:
        return found.response(request)
    if not path and not _manual.built:
        response = _not_built.response(request)
        response.status_code = 404
        return response
    raise NotFound(f"the manual has no file {path[:200]!r}")
