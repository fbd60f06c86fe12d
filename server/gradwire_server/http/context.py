"""The outermost middleware: request ids, the access log and the handler of unexpected errors."""

from __future__ import annotations

import re
import secrets
import time
from contextlib import nullcontext
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, clear_contextvars

from ..errors import problems
from ..observability.metrics import Metrics
from ..observability.tracing import Tracing

HEADER: Final = "X-Request-ID"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "STREAM")
PROBES: Final = ("/livez", "/readyz")
"""Health checks arrive every few seconds, so successful ones are not logged."""

_VALID_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = structlog.get_logger("gradwire.http")


class RequestContext:
    """ASGI middleware. A client may send its own request id; an invalid one is replaced."""

    def __init__(self, app: ASGIApp, metrics: Metrics, tracing: Tracing | None = None) -> None:
        self.app = app
        self.metrics = metrics
        self.tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        client_id = Headers(scope=scope).get(HEADER, "")
        request_id = client_id if _VALID_ID.fullmatch(client_id) else secrets.token_hex(8)
        # Copy the state: uvicorn shares the lifespan's state with WebSocket scopes.
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        clear_contextvars()
        bind_contextvars(request_id=request_id)  # for all log lines of this request
        started = time.perf_counter()
        status = 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
                status = message.get("status", 101)
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with nullcontext() if self.tracing is None else self.tracing.request(scope):
            try:
                await self.app(scope, receive, tagged)
            except ClientDisconnect:
                scope["state"]["problem"] = "client_disconnected"
            except Exception as error:
                failure = problems.defect(error, scope)
                if status:
                    # The response has started, so closing the connection is the only signal left.
                    raise
                if scope["type"] == "http":
                    await problems.response(failure, scope)(scope, receive, tagged)
                else:
                    await send({"type": "websocket.close", "code": 1011, "reason": failure.message[:120]})
            finally:
                scope["state"]["status"] = status
                self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope.get("method", "STREAM")
        if method not in METHODS:  # clients must not choose a label
            method = "other"
        code = scope["state"].get("problem", "")
        self.metrics.requests.labels(method, route, str(status)).inc()
        if scope["type"] == "http":
            self.metrics.request_seconds.labels(method, route).observe(seconds)
        if code:
            self.metrics.error(code, "rest" if scope["type"] == "http" else "stream")
        note = log.debug if route in PROBES and status == 200 else log.info
        note(
            "request",
            request_id=scope["state"]["request_id"], method=method, path=scope["path"], status=status,
            ms=round(seconds * 1e3, 2), **({"code": code} if code else {}),
        )  # fmt: skip
