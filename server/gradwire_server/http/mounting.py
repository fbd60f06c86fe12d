"""The path prefix under which a proxy shows this server, whether the proxy takes it off or not."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class Mounted:
    """ASGI middleware: in the paths of requests the prefix is there, and ``root_path`` says that it is one.

    This is how ASGI has it. (uvicorn's own option takes for granted that the proxy takes the prefix off.)
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
