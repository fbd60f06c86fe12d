"""Web pages: which of them may use the server from a browser.

A browser tells the page's origin and cannot be made to lie about it by the page. For requests it also asks first
whether the page may (CORS). For a WebSocket it does not ask, so the server looks at the origin itself: a page of
another site could otherwise open a stream with whatever the browser has.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gradwire_protocol.errors import Forbidden

from ..http import problems
from ..settings import variable
from ..tensor_formats import DTYPE_HEADER, SHAPE_HEADER

REQUEST_HEADERS: Final = (
    "Authorization", "X-API-Key", "Content-Type", "Accept", "If-None-Match", "X-Request-ID", "Traceparent",
    "Idempotency-Key", DTYPE_HEADER, SHAPE_HEADER,
)  # fmt: skip
RESPONSE_HEADERS: Final = (
    "X-Request-ID", "Location", "Retry-After", "ETag", "Content-Disposition", DTYPE_HEADER, SHAPE_HEADER,
)  # fmt: skip
PREFLIGHT_LASTS_S: Final = 600


def check(origin: str | None, allowed: Collection[str], needed: bool) -> None:
    """Refuse a WebSocket of a web page that may not open one.

    Args:
        origin: the header, ``None`` where there is none: then it is no browser.
        needed: whether only a web page may come.

    Raises:
        Forbidden: naming the origin.
    """
    if origin is None and not needed:
        return
    if origin not in allowed:
        named = "no Origin header came with it" if origin is None else f"{origin!r:.100} is not among them"
        raise Forbidden(
            f"a stream of a web page is opened by pages of the allowed origins only ({variable('allowed_origins')}), "
            f"and {named}",
            origin=origin, setting=variable("allowed_origins"),
        )  # fmt: skip


class Cors(CORSMiddleware):
    """ASGI middleware: lets pages of the allowed origins make requests and read the answers, errors too.

    No cookies are involved: a page brings its key in a header.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        super().__init__(
            app,
            allow_origins=tuple(origins),
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=REQUEST_HEADERS,
            expose_headers=RESPONSE_HEADERS,
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
    """The refusal of a preflight as a problem document."""
    kept: dict[str, Any] = {k: v for k, v in answer.headers.items() if k.startswith(("access-control-", "vary"))}
    error = Forbidden(f"{text}: see {variable('allowed_origins')}", origin=Headers(scope=scope).get("origin", ""))
    return problems.response(error, scope, kept)
