"""Limits of request bodies: size, decoded size, rate, and the memory of all bodies of a tenant."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradwire_protocol import bounds
from gradwire_protocol.errors import (
    GradwireError,
    InvalidRequest,
    LimitExceeded,
    TimeExceeded,
    TooManyRequests,
    UnsupportedMediaType,
)

from ..errors import problems
from ..settings.settings import Settings, variable
from .backlog import Backlogs

PLAIN_BYTES: Final = 4 << 20
"""The decoded size limit of JSON bodies that FastAPI parses in the event loop: sessions, keys, lists of ids."""

ALLOWANCE: Final = "gradwire.decoded_bytes"
"""The scope key for the decoded size limit of a route that parses the body itself."""

HELD: Final = "gradwire.held"
"""The scope key for the request's :class:`HeldBodies`."""


class BodyLimit:
    """ASGI middleware. JSON has its own limits, because it grows when it is parsed: on its length and on the size of
    its decoded values, which is estimated while it arrives.

    The rest of a refused body is not read: the connection closes after the response. Bodies and unwritten responses
    count towards the tenant's backlog.
    """

    def __init__(self, app: ASGIApp, settings: Settings, backlogs: Backlogs) -> None:
        self.app = app
        self.settings = settings
        self.backlogs = backlogs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        kind = headers.get("content-type", "").lower()
        is_json = "json" in kind or not kind.strip()
        name = "max_json_bytes" if is_json else "max_body_bytes"
        limit: int = min(getattr(self.settings, name), self.settings.max_body_bytes)
        announced = headers.get("content-length")
        pending_bytes = scope[HELD] = HeldBodies(self.backlogs, scope)
        if announced is not None:
            error: GradwireError | None = None
            if not announced.isdecimal():
                error = InvalidRequest(f"Content-Length must be a number, not {announced!r:.40}")
            elif int(announced) > limit:
                error = _too_large(name, limit, int(announced))
            else:
                error = pending_bytes.set_size(int(announced))
            if error is not None:
                await problems.response(error, scope, {"Connection": "close"})(scope, receive, send)
                return
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            # A few compressed bytes could expand without limit.
            unpacked = UnsupportedMediaType(
                f"unsupported Content-Encoding {encoding!r:.40}; send the body uncompressed", accepted=["identity"]
            )
            await problems.response(unpacked, scope, {"Connection": "close"})(scope, receive, send)
            return
        length = int(announced or 0)
        seen = decoded = 0
        pace = _Pace(self.settings)

        async def counted() -> Message:
            nonlocal seen, decoded
            message = await pace.within(receive, seen)
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                pace.over = not message.get("more_body", False)
                if seen > limit:
                    raise problems.BodyTooLarge(_too_large(name, limit, seen))
                if is_json:
                    decoded += bounds.estimate_json(message.get("body", b""))
                    most = scope.get(ALLOWANCE, min(PLAIN_BYTES, self.settings.max_decoded_bytes))
                    if decoded > most:
                        raise problems.BodyTooLarge(bounds.too_much(most, decoded))
                refused = pending_bytes.set_size(max(seen, length) + decoded)
                if refused is not None:
                    raise problems.BodyTooLarge(refused)
            return message

        try:
            await self.app(scope, counted, pending_bytes.counting_response(send))
        finally:
            pending_bytes.close()


class HeldBodies:
    """The memory of a request, its body and its response, in the tenant's backlog."""

    def __init__(self, backlogs: Backlogs, scope: Scope) -> None:
        self.pending_bytes = 0
        self.scope = scope
        tenant = scope.get("state", {}).get("tenant")
        self._backlog = None if tenant is None else backlogs.of(tenant)

    def resume_reading(self) -> None:
        """Do nothing: requests do not wait for memory."""

    def set_size(self, pending_bytes: int) -> TooManyRequests | None:
        """Set the memory of the request. Returns an error if the backlog is full."""
        backlog = self._backlog
        if backlog is None or pending_bytes == self.pending_bytes:
            return None
        if pending_bytes > self.pending_bytes and not backlog.fits(self, pending_bytes):
            name = variable("max_key_backlog_bytes")
            others = backlog.pending_bytes - self.pending_bytes
            return TooManyRequests(
                f"the streams and requests of this key hold {others:,} bytes, this one adds {pending_bytes:,}; above "
                f"{backlog.most:,} ({name}) the server accepts only small bodies; retry after some are answered",
                setting=name, limit=backlog.most, value=others + pending_bytes,
            )  # fmt: skip
        backlog.update(self, pending_bytes)
        return None

    def counting_response(self, send: Send) -> Send:
        """Wrap ``send`` to count the response from its start."""
        refused: Response | None = None

        async def counted(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                size = int(Headers(raw=message["headers"]).get("content-length", "0"))
                problem = self.set_size(self.pending_bytes + size)
                if problem is not None and self.scope["method"] == "GET":
                    refused = problems.response(problem, self.scope)
                elif problem is not None and self._backlog is not None:
                    self._backlog.update(self, self.pending_bytes + size)
            if refused is None:
                await send(message)
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                await refused(self.scope, _nothing, send)

        return counted

    def close(self) -> None:
        """Free the memory of the request."""
        if self._backlog is not None:
            self._backlog.leave(self)


async def _nothing() -> Message:
    raise AssertionError("a problem response reads no body")


class _Pace:
    """Enforces the minimum rate of a body. ``over``: the body is complete; only the disconnect may follow."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.started = time.monotonic()
        self.over = not settings.min_body_rate

    async def within(self, receive: Receive, seen: int) -> Message:
        """The next message, if it arrives in time after ``seen`` bytes of the body."""
        if self.over:
            return await receive()
        rate = self.settings.min_body_rate
        try:
            async with asyncio.timeout_at(self._end(seen / rate)):
                return await receive()
        except TimeoutError:
            raise problems.BodyTooLarge(
                TimeExceeded(
                    f"the body arrived at less than {rate:,} bytes per second ({variable('min_body_rate')})",
                    setting=variable("min_body_rate"),
                    limit=rate,
                    value=seen,
                )
            ) from None

    def _end(self, earned: float) -> float:
        waited = time.monotonic() - self.started
        return asyncio.get_running_loop().time() + self.settings.head_patience_s + earned - waited


def _too_large(name: str, limit: int, size: int) -> LimitExceeded:
    return LimitExceeded(
        f"the body has at least {size:,} bytes; the limit is {limit:,} ({variable(name)})",
        setting=variable(name), limit=limit, value=size,
    )  # fmt: skip
