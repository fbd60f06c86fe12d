"""The limits on bodies: by the headers before a byte is read, else by counting and by the clock; and on what all those
of one tenant hold together."""

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

from ..settings import Settings, variable
from ..streams.backlog import Backlogs
from . import problems

PLAIN_BYTES: Final = 4 << 20
"""What the values of a JSON body may take that FastAPI parses, in the event loop: sessions, keys, lists of ids."""

ALLOWANCE: Final = "gradwire.decoded_bytes"
"""In a request's scope: what they may take where a route parses the body itself, in a thread where that is long."""

HELD: Final = "gradwire.held"
"""In a request's scope: its :class:`Held`."""


class BodyLimit:
    """ASGI middleware. JSON has limits of its own, since it grows when it is parsed: on its length, and on what its
    values will take, which is estimated while it arrives.

    The rest of a refused body is not read: the connection closes after the response. A tenant's bodies count among what
    its streams hold, and so do responses until they are written.
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
        held = scope[HELD] = Held(self.backlogs, scope)
        if announced is not None:
            error: GradwireError | None = None
            if not announced.isdecimal():
                error = InvalidRequest(f"Content-Length {announced!r:.40} is not a number")
            elif int(announced) > limit:
                error = _too_large(name, limit, int(announced))
            else:
                error = held.take(int(announced))
            if error is not None:
                await problems.response(error, scope, {"Connection": "close"})(scope, receive, send)
                return
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            # A few bytes would unfold to any number.
            unpacked = UnsupportedMediaType(
                f"bodies are read as they are, not with Content-Encoding {encoding!r:.40}", accepted=["identity"]
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
                refused = held.take(max(seen, length) + decoded)
                if refused is not None:
                    raise problems.BodyTooLarge(refused)
            return message

        try:
            await self.app(scope, counted, held.answering(send))
        finally:
            held.end()


class Held:
    """What a request holds of its tenant's memory: its body, and then its response. Nobody else's counts."""

    def __init__(self, backlogs: Backlogs, scope: Scope) -> None:
        self.held = 0
        self.scope = scope
        tenant = scope.get("state", {}).get("tenant")
        self._backlog = None if tenant is None else backlogs.of(tenant)

    def read_on(self) -> None:
        """A request does not wait until there is room."""

    def take(self, held: int) -> TooManyRequests | None:
        """Hold so much from now on, or tell why not."""
        backlog = self._backlog
        if backlog is None or held == self.held:
            return None
        if held > self.held and not backlog.fits(self, held):
            name = variable("max_key_backlog_bytes")
            others = backlog.held - self.held
            return TooManyRequests(
                f"the streams and requests of this key hold {others:,} bytes, and this would be {held:,} more: from "
                f"{backlog.most:,} on ({name}) only small bodies are taken; wait until some are answered",
                setting=name, limit=backlog.most, value=others + held,
            )  # fmt: skip
        backlog.tell(self, held)
        return None

    def answering(self, send: Send) -> Send:
        """``send``, for a response that counts once it begins."""
        refused: Response | None = None

        async def counted(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                size = int(Headers(raw=message["headers"]).get("content-length", "0"))
                problem = self.take(self.held + size)
                if problem is not None and self.scope["method"] == "GET":
                    refused = problems.response(problem, self.scope)
                elif problem is not None and self._backlog is not None:
                    self._backlog.tell(self, self.held + size)
            if refused is None:
                await send(message)
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                await refused(self.scope, _nothing, send)

        return counted

    def end(self) -> None:
        """The request is over."""
        if self._backlog is not None:
            self._backlog.leave(self)


async def _nothing() -> Message:
    raise AssertionError("a problem reads no body")


class _Pace:
    """How slowly a body may arrive. ``over``: it has arrived, and what is waited for is the client's leaving."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.started = time.monotonic()
        self.over = not settings.min_body_rate

    async def within(self, receive: Receive, seen: int) -> Message:
        """The next message, if it comes in time for a body of which ``seen`` bytes are there."""
        if self.over:
            return await receive()
        rate = self.settings.min_body_rate
        try:
            async with asyncio.timeout_at(self._end(seen / rate)):
                return await receive()
        except TimeoutError:
            raise problems.BodyTooLarge(
                TimeExceeded(
                    f"the body came with less than {rate:,} bytes in a second ({variable('min_body_rate')})",
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
        f"the body has {size:,} bytes or more, {limit:,} are allowed ({variable(name)})",
        setting=variable(name), limit=limit, value=size,
    )  # fmt: skip
