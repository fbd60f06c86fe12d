"""The scope of each route. A route without a row requires ``admin`` and fails a test.

Other tenants' sessions return 404 regardless of the key's scopes. A missing scope is reported only for the tenant's own
sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

READ: Final = "read"
SESSION: Final = "session"
ADMIN: Final = "admin"
ANY: Final = "any"
"""Any valid key, whatever its scopes."""

OPEN: Final = ""
"""No key required."""

STREAM: Final = "STREAM"
"""The method of WebSocket routes in this table."""

SCOPES: Final[dict[tuple[str, str], str]] = {
    ("GET", "/livez"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/docs/swagger-ui.css"): OPEN,
    ("GET", "/docs/swagger-ui-bundle.js"): OPEN,
    ("GET", "/docs/start.js"): OPEN,
    ("GET", "/docs/favicon-32x32.png"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/manual"): OPEN,
    ("GET", "/manual/{path:path}"): OPEN,
    ("GET", "/"): OPEN,
    ("GET", "/console"): OPEN,
    ("GET", "/console/app.css"): OPEN,
    ("GET", "/console/app.js"): OPEN,
    ("GET", "/console/icon.svg"): OPEN,
    ("GET", "/console/sign-in"): ANY,
    ("POST", "/console/sign-in"): ANY,
    ("DELETE", "/console/sign-in"): ANY,
    ("GET", "/metrics"): ADMIN,
    ("GET", "/v1/activity"): ANY,
    ("GET", "/v1/activity/stream"): ANY,
    ("GET", "/v1/version"): READ,
    ("GET", "/v1/devices"): READ,
    ("GET", "/v1/diagnostics"): READ,
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
    ("POST", "/v1/sessions/{session_id}/profile"): SESSION,
    ("GET", "/v1/sessions/{session_id}/tensors"): READ,
    ("GET", "/v1/sessions/{session_id}/tensors/{tensor_id}"): READ,
    ("PUT", "/v1/sessions/{session_id}/tensors/{tensor_id}"): SESSION,
    ("DELETE", "/v1/sessions/{session_id}/tensors/{tensor_id}"): SESSION,
    ("GET", "/v1/sessions/{session_id}/names"): READ,
    ("GET", "/v1/sessions/{session_id}/names/{name}"): READ,
    ("PUT", "/v1/sessions/{session_id}/names/{name}"): SESSION,
    ("DELETE", "/v1/sessions/{session_id}/names/{name}"): SESSION,
    ("POST", "/v1/sessions/{session_id}/backward"): SESSION,
    ("POST", "/v1/sessions/{session_id}/grad"): SESSION,
    ("GET", "/v1/sessions/{session_id}/graph"): READ,
    ("GET", "/v1/sessions/{session_id}/groups"): READ,
    ("POST", "/v1/sessions/{session_id}/groups"): SESSION,
    ("DELETE", "/v1/sessions/{session_id}/groups/{group}"): SESSION,
    ("GET", "/v1/sessions/{session_id}/history"): READ,
    ("GET", "/v1/sessions/{session_id}/history/search"): READ,
    ("GET", "/v1/sessions/{session_id}/history/recording"): READ,
    ("POST", "/v1/sessions/{session_id}/checkpoints"): SESSION,
    ("DELETE", "/v1/sessions/{session_id}/checkpoints/{name}"): SESSION,
    ("POST", "/v1/sessions/{session_id}/rewind"): SESSION,
    ("POST", "/v1/sessions/{session_id}/fork"): SESSION,
    ("POST", "/v1/sessions/{session_id}/past"): SESSION,
    ("PUT", "/v1/sessions/{session_id}/past"): SESSION,
    (STREAM, "/v1/sessions/{session_id}/stream"): SESSION,
    ("POST", "/v1/tickets"): SESSION,
    ("GET", "/v1/keys"): ADMIN,
    ("POST", "/v1/keys"): ADMIN,
    ("GET", "/v1/keys/{key_id}"): ADMIN,
    ("DELETE", "/v1/keys/{key_id}"): ADMIN,
}

GATEWAY_SCOPES: Final[dict[tuple[str, str], str]] = {
    ("GET", "/v1/fleet"): ADMIN,
    ("GET", "/v1/fleet/workers/{worker}/metrics"): ADMIN,
    ("POST", "/v1/fleet/nodes/{node}/drain"): ADMIN,
    ("DELETE", "/v1/fleet/nodes/{node}/drain"): ADMIN,
}
"""What only the gateways of a fleet have."""

OPEN_PATHS: Final = frozenset(path for (_, path), scope in SCOPES.items() if scope == OPEN)
"""Paths that require no key. All others do, even paths without a route."""

OPEN_FOLDERS: Final = tuple(path.partition("{")[0] for path in OPEN_PATHS if path.endswith(":path}"))
"""What the paths of all files begin with that require no key."""

WORKER_OPEN_PATHS: Final = frozenset({"/livez", "/readyz"})
"""Paths of a worker of a fleet that require no pass, for probes. Clients reach a worker, so its metrics need one."""

_PARAMETER: Final = re.compile(r"\\{(\w+)(?::\w+)?\\}")


def walk(routes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Method and path of every route, included routers' routes as well."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from walk(inner.routes)
        else:
            for method in sorted(getattr(route, "methods", None) or {STREAM}):
                if method != "HEAD":
                    yield method, route.path


class Rules:
    """The scopes of an application's routes by method and path."""

    def __init__(self, routes: Iterable[Any]) -> None:
        self._rules: dict[str, list[tuple[re.Pattern[str], str]]] = {}
        for method, path in walk(routes):
            pattern = _PARAMETER.sub(r"(?P<\1>[^/]+)", re.escape(path))
            self._rules.setdefault(method, []).append((re.compile(pattern), SCOPES.get((method, path), ADMIN)))

    def find(self, method: str, path: str) -> tuple[str, str | None] | None:
        """The scope of a request's route and the session id in the path, if any; ``None`` without a route."""
        for pattern, scope in self._rules.get("GET" if method == "HEAD" else method, ()):
            match = pattern.fullmatch(path)
            if match is not None:
                return scope, match.groupdict().get("session_id")
        return None
