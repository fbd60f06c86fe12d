"""The origins whose web pages may use the server.

A browser sends the page's origin, which the page cannot forge, with every WebSocket. It enforces CORS for requests, but
not for WebSockets. So the server checks the origin of a WebSocket itself: otherwise any page could open a stream with a
key or ticket that it came by. A WebSocket without an origin is not of a page.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gradwire_protocol.errors import Forbidden

from ..errors import problems
from ..settings.settings import variable

REQUEST_HEADERS: Final = (
    "Authorization", "X-API-Key", "Content-Type", "Accept", "If-None-Match", "X-Request-ID", "Traceparent",
    "Idempotency-Key",
)  # fmt: skip
RESPONSE_HEADERS: Final = ("X-Request-ID", "Location", "Retry-After", "ETag", "Content-Disposition")
PREFLIGHT_LASTS_S: Final = 600


def check(origin: str | None, allowed: Collection[str]) -> None:
    """Check the origin of a WebSocket.

    Args:
        origin: the header; ``None`` without it, that is, for clients other than browsers.

    Raises:
        Forbidden: when the origin is not allowed.
    """
    if origin is not None and origin not in allowed:
        raise Forbidden(
            f"the origin {origin!r:.100} is not allowed; a web page may open a stream only from an origin in "
            f"{variable('allowed_origins')}",
            origin=origin, setting=variable("allowed_origins"),
        )  # fmt: skip


class Cors(CORSMiddleware):
    """ASGI middleware for CORS. Pages of allowed origins can make requests and read all responses.

    No cookies are involved: a page sends its key in a header.

    Args:
        headers: further request and response headers of the routes.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str], headers: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=tuple(origins),
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=(*REQUEST_HEADERS, *headers),
            expose_headers=(*RESPONSE_HEADERS, *headers),
            max_age=PREFLIGHT_LASTS_S,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if scope.get("method") == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers:
            answer = self.preflight_response(Headers(scope=scope))
            if answer.status_code != 200:
                answer = _refused(bytes(answer.body).decode(), scope, answer)
            await answer(scope, receive, send)
            return
        await super().__call__(scope, receive, send)


def _refused(text: str, scope: Scope, answer: Response) -> Response:
    """A refused preflight request as a problem document."""
    kept: dict[str, Any] = {k: v for k, v in answer.headers.items() if k.startswith(("access-control-", "vary"))}
    error = Forbidden(f"{text}; see {variable('allowed_origins')}", origin=Headers(scope=scope).get("origin", ""))
    return problems.response(error, scope, kept)
