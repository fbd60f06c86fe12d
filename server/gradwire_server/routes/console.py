"""The console: its page, its files, and signing in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse, RedirectResponse

from gradwire_protocol.errors import InvalidRequest

from ..auth import Caller, caller_of
from ..auth.sign_ins import COOKIE
from ..http import console_page
from ..http.state import Server, TheServer
from ..http.tensor_formats import JSON
from ..settings.version import VERSION

router = APIRouter(prefix="/console", include_in_schema=False)
root = APIRouter(include_in_schema=False)

NO_STORE = {"Cache-Control": "no-store", "Vary": "Cookie"}


@root.get("/")
async def start(server: TheServer, request: Request) -> Response:
    """Lead browsers to the console, or to the page of the interface without one; tell programs what is where."""
    prefix = server.settings.root_path
    places = {"documentation": f"{prefix}/docs", "openapi": f"{prefix}/openapi.json", "api": f"{prefix}/v1"}
    if server.settings.console:
        places["console"] = f"{prefix}/console"
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(places.get("console", places["documentation"]), 307, {"Vary": "Accept"})
    return JSONResponse({"name": "gradwire", "version": VERSION} | places, headers={"Vary": "Accept"}, media_type=JSON)


@router.get("")
async def page(request: Request) -> Response:
    """The page. It has no data: it asks for them with the cookie."""
    return console_page.page().response(request)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        return (await asyncio.to_thread(console_page.file, name)).response(request)

    return serve


for _name in console_page.FILES:
    router.add_api_route(f"/{_name}", _file(_name))


@router.get("/sign-in")
async def who(request: Request) -> Response:
    """Who is signed in."""
    return JSONResponse(_described(caller_of(request)), headers=NO_STORE)


@router.post("/sign-in")
async def sign_in(server: TheServer, request: Request) -> Response:
    """Exchange the key of the request's header for a cookie."""
    caller = caller_of(request)
    if caller.sign_in is not None:
        raise InvalidRequest("already signed in; sign out first, or send a key in the Authorization header")
    text, lasts_s = server.access.sign_ins.begin(caller.key)
    server.access.audit.note("signed_in")
    response = JSONResponse(_described(caller), headers=NO_STORE)
    _set_cookie(server, request, response, text, int(lasts_s))
    return response


@router.delete("/sign-in")
async def sign_out(server: TheServer, request: Request) -> Response:
    """End the sign-in and its streams."""
    caller = caller_of(request)
    if caller.sign_in is not None:
        server.access.sign_ins.end(caller.sign_in)
        server.access.audit.note("signed_out")
    response = Response(status_code=204, headers=NO_STORE)
    _set_cookie(server, request, response, "", 0)
    return response


def _described(caller: Caller) -> dict[str, Any]:
    key = caller.key
    return {"key": key.id, "name": key.name, "tenant": key.tenant, "scopes": key.scopes}


def _set_cookie(server: Server, request: Request, response: Response, text: str, lasts_s: int) -> None:
    response.set_cookie(
        COOKIE, text, max_age=lasts_s, path=server.settings.root_path or "/", secure=request.url.scheme == "https",
        httponly=True, samesite="strict",
    )  # fmt: skip
