"""The path prefix of a reverse proxy, for proxies that strip it and for those that do not."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class Mounted:
    """ASGI middleware: sets ``root_path`` to the prefix and makes ``path`` include it, as ASGI specifies.

    uvicorn's own option assumes that the proxy strips the prefix.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            path = scope["path"]
            inside = path == self.prefix or path.startswith(self.prefix + "/")
            scope["root_path"] = self.prefix
            scope["path"] = path if inside else self.prefix + path
        await self.app(scope, receive, send)
