"""Which scope a route needs: one row a route. One without a row needs ``admin``, and fails a test.

Somebody else's session is not found, whatever the scopes of the key that asks: a key without the scope is told so only
about what is its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

READ: Final = "read"
SESSION: Final = "session"
ADMIN: Final = "admin"
OPEN: Final = ""
"""Needs no key at all."""

STREAM: Final = "STREAM"
"""What stands for the method of a WebSocket."""

SCOPES: Final[dict[tuple[str, str], str]] = {
    ("GET", "/livez"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/docs/oauth2-redirect"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/metrics"): ADMIN,
    ("GET", "/v1/version"): READ,
    ("GET", "/v1/devices"): READ,
    ("GET", "/v1/ops"): READ,
    ("GET", "/v1/sessions"): READ,
    ("POST", "/v1/sessions"): SESSION,
    ("POST", "/v1/sessions/import"): SESSION,
    ("GET", "/v1/sessions/{session_id}"): READ,
    ("DELETE", "/v1/sessions/{session_id}"): SESSION,
    ("GET", "/v1/sessions/{session_id}/export"): READ,
    ("GET", "/v1/sessions/{session_id}/memory"): READ,
    ("DELETE", "/v1/sessions/{session_id}/memory/peak"): SESSION,
    ("POST", "/v1/sessions/{session_id}/frames"): SESSION,
    ("DELETE", "/v1/sessions/{session_id}/frames"): SESSION,
    ("DELETE", "/v1/sessions/{session_id}/frames/{seq}"): SESSION,
    ("POST", "/v1/sessions/{session_id}/clients"): SESSION,
    ("GET", "/v1/sessions/{session_id}/tensors"): READ,
    ("GET", "/v1/sessions/{session_id}/tensors/{tensor_id}"): READ,
    ("PUT", "/v1/sessions/{session_id}/tensors/{tensor_id}"): SESSION,
    ("DELETE", "/v1/sessions/{session_id}/tensors/{tensor_id}"): SESSION,
    ("POST", "/v1/sessions/{session_id}/backward"): SESSION,
    ("POST", "/v1/sessions/{session_id}/grad"): SESSION,
    ("GET", "/v1/sessions/{session_id}/graph"): READ,
    (STREAM, "/v1/sessions/{session_id}/stream"): SESSION,
    ("POST", "/v1/tickets"): SESSION,
    ("GET", "/v1/keys"): ADMIN,
    ("POST", "/v1/keys"): ADMIN,
    ("GET", "/v1/keys/{key_id}"): ADMIN,
    ("DELETE", "/v1/keys/{key_id}"): ADMIN,
}

OPEN_PATHS: Final = frozenset(path for (_, path), scope in SCOPES.items() if scope == OPEN)
"""What needs no key. Everything else does, routes that do not exist included."""

_PARAMETER: Final = re.compile(r"\\{(\w+)(?::\w+)?\\}")


def walk(routes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Method and path of every route, those of included routers, too."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from walk(inner.routes)
        else:
            for method in sorted(getattr(route, "methods", None) or {STREAM}):
                if method != "HEAD":
                    yield method, route.path


class Rules:
    """The scopes of an application's routes, found by method and path."""

    def __init__(self, routes: Iterable[Any]) -> None:
        self._rules: dict[str, list[tuple[re.Pattern[str], str]]] = {}
        for method, path in walk(routes):
            pattern = _PARAMETER.sub(r"(?P<\1>[^/]+)", re.escape(path))
            self._rules.setdefault(method, []).append((re.compile(pattern), SCOPES.get((method, path), ADMIN)))

    def find(self, method: str, path: str) -> tuple[str, str | None] | None:
        """The scope that a request needs, and the session it names, if it does; ``None`` where there is no route."""
        for pattern, scope in self._rules.get("GET" if method == "HEAD" else method, ()):
            match = pattern.fullmatch(path)
            if match is not None:
                return scope, match.groupdict().get("session_id")
        return None
