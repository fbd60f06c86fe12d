"""Requests about one session go to its worker, with a pass; the response is streamed back."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx
import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gradwire_protocol.errors import GradwireError, NotFound, Unavailable

from ..auth.auth_middleware import route_path
from ..auth.passes import PASS_HEADER
from ..auth.scopes import SCOPES, STREAM
from ..errors import problems
from ..hosting.jobs import MOVING
from .messages import Placement

if TYPE_CHECKING:
    from ..auth.caller import Caller
    from .gateway import Gateway

KEPT_BYTES: Final = 1 << 20
"""A body up to this length is kept, to be sent again."""

TRIES: Final = 4
MOVING_S: Final = 20.0
"""How long a request waits for a session that is being handed over."""

LOOK_EVERY_S: Final = 0.1
SAFE: Final = frozenset({"GET", "HEAD"})
_DROPPED: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade", "host", "authorization", "x-api-key", "cookie", "origin", "expect", "x-request-id",
        "x-forwarded-for", "x-forwarded-proto", "date", "server", PASS_HEADER.lower(),
    }
)  # fmt: skip
"""Headers of one connection, of the caller's identity, and those that the gateway writes itself."""

MOVED: Final = frozenset({"not_found", "session_gone", "unavailable", "unauthorized"})
"""Codes with which a worker may answer for a session that is elsewhere."""

log = structlog.get_logger("gradwire.fleet")


class _Template:
    """The route of a forwarded request; logs and metrics name it."""

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.path = path
        pattern = re.escape(path).replace(re.escape("{session_id}"), "(?P<session>[^/]+)")
        self.matches = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", pattern)).fullmatch


_TEMPLATES: Final = [_Template(*each) for each in SCOPES if "{session_id}" in each[1] and each[0] != STREAM]


class Forwarding:
    """ASGI middleware, inside of authentication, around the routes."""

    def __init__(self, app: ASGIApp, gateway: Gateway) -> None:
        self.app = app
        self.gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, method = route_path(scope), "GET" if scope["method"] == "HEAD" else scope["method"]
        for each in _TEMPLATES:
            if each.method == method and (match := each.matches(path)) is not None:
                break
        else:
            await self.app(scope, receive, send)
            return
        scope["route"] = each
        try:
            await self._forward(match["session"], scope, receive, send)
        except GradwireError as error:
            await problems.response(error, scope)(scope, receive, send)

    async def _forward(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        tenant = caller.key.tenant
        body = await Body.begin(scope, receive)
        silent, fresh = "", False
        for attempt in range(TRIES):
            place = await self.gateway.locate(session, tenant, silent, fresh)
            last = attempt == TRIES - 1
            try:
                place, response = await self._send_until_there(place, caller, session, scope, body)
            except httpx.ConnectError as error:
                log.warning("worker cannot be reached", worker=place.worker, reason=str(error))
                silent = place.worker
                continue
            except httpx.HTTPError as error:
                log.warning("worker did not answer", worker=place.worker, reason=str(error))
                if scope["method"] in SAFE and body.repeatable:
                    silent = place.worker
                    continue
                raise Unavailable(f"the worker of session {session} ended before it answered") from None
            try:
                if response.status_code in (401, 404, 503) and not last and body.repeatable:
                    moved = await self._may_have_moved(response, place, session, tenant)
                    if moved:
                        fresh = True
                        continue
                if response.status_code < 300 and scope["method"] == "DELETE" and _whole(scope, session):
                    await self._deleted(session, tenant)
                await _relay_response(response, send)
                return
            finally:
                await response.aclose()
        raise Unavailable(f"no worker answered for session {session}")

    async def _send(self, place: Placement, caller: Caller, session: str, scope: Scope, body: Body) -> httpx.Response:
        signed = await self.gateway.request_pass(caller.key, session, place.worker)
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]]
        kept = [(name, value) for name, value in headers if name.lower() not in _DROPPED]
        kept += [(PASS_HEADER, signed), ("X-Request-ID", problems.request_id(scope))]
        url = target(place.url, scope)
        if not any(name.lower() == "accept-encoding" for name, _ in kept):
            kept.append(("Accept-Encoding", "identity"))
        request = self.gateway.http.build_request(scope["method"], url, headers=kept, content=body.content())
        return await self.gateway.http.send(request, stream=True)

    async def _send_until_there(
        self, place: Placement, caller: Caller, session: str, scope: Scope, body: Body
    ) -> tuple[Placement, httpx.Response]:
        """Send a request, again while the session is being handed over. Returns also where it went."""
        deadline = time.monotonic() + MOVING_S
        while True:
            response = await self._send(place, caller, session, scope, body)
            if response.status_code != 503 or not body.repeatable or time.monotonic() > deadline:
                return place, response
            await response.aread()
            if not _is_moving(response):
                return place, response
            await asyncio.sleep(LOOK_EVERY_S)
            place = await self.gateway.locate(session, caller.key.tenant, fresh=True)

    async def _may_have_moved(self, response: httpx.Response, place: Placement, session: str, tenant: str) -> bool:
        """Whether the session is elsewhere by now, after a worker refused a request for it."""
        try:
            await response.aread()
            code = response.json().get("code")
        except (httpx.HTTPError, ValueError, AttributeError):
            return False
        if code not in MOVED:
            return False
        now = await self.gateway.locate(session, tenant, fresh=True)
        return now.worker != place.worker

    async def _deleted(self, session: str, tenant: str) -> None:
        self.gateway.forget(session)
        try:
            await self.gateway.directory.call("deleted", session, tenant)
        except NotFound:  # the worker's report was faster
            pass


def _is_moving(response: httpx.Response) -> bool:
    try:
        return bool(response.json()["extra"].get("reason") == MOVING)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _whole(scope: Scope, session: str) -> bool:
    return route_path(scope) == f"/v1/sessions/{session}"


def target(worker: str, scope: Scope) -> httpx.URL:
    """The URL of a request at its worker.

    The path is made anew from the one that the rules have matched: what the client sent may decode to it and still
    begin with something else than a slash, and so become part of the host.
    """
    path = quote(route_path(scope), safe="/").encode()
    query: bytes = scope["query_string"]
    return httpx.URL(worker).copy_with(raw_path=path + (b"?" + query if query else b""))


class Body:
    """A request's body: kept when it is short, else passed on as it arrives."""

    def __init__(self, receive: Receive, start: bytes, complete: bool) -> None:
        self._receive = receive
        self._start = start
        self._complete = complete
        self.repeatable = complete

    @classmethod
    async def begin(cls, scope: Scope, receive: Receive) -> Body:
        """Read a short body, or the beginning of a long one."""
        headers = Headers(scope=scope)
        length = headers.get("content-length")
        if length is None and "transfer-encoding" not in headers:
            return cls(receive, b"", True)
        parts, size, more = [], 0, True
        while more and size < KEPT_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            more = message.get("more_body", False)
        return cls(receive, b"".join(parts), not more)

    def content(self) -> Any:
        """What httpx sends."""
        if self._complete:
            return self._start or None
        return self._stream()

    async def _stream(self) -> AsyncIterator[bytes]:
        yield self._start
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Unavailable("the client disconnected")
            if part := message.get("body", b""):
                yield part
            if not message.get("more_body", False):
                return


async def _relay_response(response: httpx.Response, send: Send) -> None:
    headers = [(k.lower(), v) for k, v in response.headers.raw if k.decode("latin-1").lower() not in _DROPPED]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    try:
        if response.is_stream_consumed:
            await send({"type": "http.response.body", "body": response.content})
            return
        async for part in response.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
    except httpx.HTTPError as error:
        # The response has started, so closing the connection is the only signal left.
        raise ConnectionError(f"the worker ended in the middle of its answer: {error}") from None
    await send({"type": "http.response.body", "body": b""})
