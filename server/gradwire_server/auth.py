"""API keys: who may enter, checked before anything of a request is read."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gradwire_protocol.errors import GradwireError, Unauthorized

from . import problems
from .settings import HASHED

OPEN_PATHS: Final = frozenset({"/livez", "/readyz", "/docs", "/openapi.json"})
"""What needs no key. Everything else does, routes that do not exist included."""


def generate_key() -> str:
    """A new API key with 256 random bits."""
    return "gw_" + secrets.token_urlsafe(32)


class KeyRing:
    """The keys that open this server, as hashes. Each key is a tenant of its own."""

    def __init__(self, hashes: Iterable[str]) -> None:
        self._digests = tuple(bytes.fromhex(each.removeprefix(HASHED)) for each in hashes)
        if not self._digests:
            raise ValueError("a server needs at least one API key (GRADWIRE_API_KEYS)")

    def tenant(self, key: str) -> str | None:
        """The tenant of this key, or ``None``. Takes the same time for every key of the same length."""
        presented = hashlib.sha256(key.encode()).digest()
        found = None
        for digest in self._digests:
            if hmac.compare_digest(presented, digest):
                found = digest.hex()[:16]
        return found


def presented_key(headers: Headers) -> str | None:
    """The key of a request: ``Authorization: Bearer <key>``, or ``X-API-Key: <key>``."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    return headers.get("x-api-key")


class Authentication:
    """ASGI middleware: no key, no entry. The tenant is left in ``scope["state"]["tenant"]``."""

    def __init__(self, app: ASGIApp, keys: KeyRing) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"] in OPEN_PATHS):
            await self.app(scope, receive, send)
            return
        key = presented_key(Headers(scope=scope))
        tenant = None if key is None else self.keys.tenant(key)
        if tenant is None:
            text = "no API key was given" if key is None else "this API key is not known here"
            error = Unauthorized(f"{text}: send it as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'")
            await refuse(error, scope, receive, send)
            return
        scope.setdefault("state", {})["tenant"] = tenant
        await self.app(scope, receive, send)


async def refuse(error: GradwireError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a problem instead of what was asked for; a WebSocket is not accepted."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})
        return
    await problems.response(error, scope)(scope, receive, send)
