"""The limit on request bodies: by the header before a byte is read, else by counting."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradwire_protocol.errors import GradwireError, InvalidRequest, LimitExceeded

from . import problems
from .settings import Settings, variable


class BodyLimit:
    """ASGI middleware. JSON has a limit of its own, since it grows when it is parsed.

    The rest of a refused body is not read: the connection closes after the response.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        name = "max_json_bytes" if "json" in headers.get("content-type", "json") else "max_body_bytes"
        limit: int = min(getattr(self.settings, name), self.settings.max_body_bytes)
        announced = headers.get("content-length")
        if announced is not None:
            error: GradwireError | None = None
            if not announced.isdecimal():
                error = InvalidRequest(f"Content-Length {announced!r:.40} is not a number")
            elif int(announced) > limit:
                error = _too_large(name, limit, int(announced))
            if error is not None:
                await problems.response(error, scope, {"Connection": "close"})(scope, receive, send)
                return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > limit:
                    raise problems.BodyTooLarge(_too_large(name, limit, seen))
            return message

        await self.app(scope, counted, send)


def _too_large(name: str, limit: int, size: int) -> LimitExceeded:
    return LimitExceeded(
        f"the body has {size:,} bytes or more, {limit:,} are allowed ({variable(name)})",
        setting=variable(name), limit=limit, value=size,
    )  # fmt: skip
