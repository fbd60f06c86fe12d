"""Quotas for a key's sessions: their number and their memory.

The engine enforces each session's memory limit. The memory quota of a tenant bounds the sum of these limits and is
checked only when a session is created, so running sessions need no coordination. A session that requests no limit gets
an equal share if the number of sessions is limited, else the remaining quota; at most ``max_session_bytes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradwire_protocol.errors import TooManyRequests

from ..settings.settings import Settings, variable
from .keys import Key


class Quotas:
    """Checks quotas. Sessions under construction count, so that concurrent requests cannot exceed a quota."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._under_construction: dict[str, list[int]] = {}

    @contextmanager
    def reserve(
        self, key: Key, granted: list[int], limits: dict[str, int] | None, ending: int = 0
    ) -> Iterator[dict[str, int] | None]:
        """Reserve quota for a session while it is created. Yields the session's limits.

        Args:
            granted: the memory limits of the tenant's sessions.
            limits: the requested limits.
            ending: how many of the sessions have ended but still compute.

        Raises:
            TooManyRequests: when the quota is exceeded.
        """
        under_construction = self._under_construction.setdefault(key.tenant, [])
        grant = self._grant(key, [*granted, *under_construction], limits, ending)
        size = 0 if grant is None else grant.get("max_session_bytes", 0)
        under_construction.append(size)
        try:
            yield grant
        finally:
            under_construction.remove(size)
            if not under_construction:
                self._under_construction.pop(key.tenant, None)

    def _grant(self, key: Key, granted: list[int], limits: dict[str, int] | None, ending: int) -> dict[str, int] | None:
        still = f", {ending} of them deleted or expired and still computing" if ending else ""
        most = key.quota("max_key_sessions", self.settings)
        if most and len(granted) >= most:
            raise TooManyRequests(
                f"this key has {len(granted)} sessions{still}; the limit is {most} ({variable('max_key_sessions')}); "
                "delete a session or wait until one expires",
                setting=variable("max_key_sessions"), limit=most, value=len(granted), ending=ending,
            )  # fmt: skip
        quota = key.quota("max_key_bytes", self.settings)
        if not quota:
            return limits
        left = quota - sum(granted)
        grant = (limits or {}).get("max_session_bytes")
        if grant is None:
            grant = min(self.settings.max_session_bytes, quota // most if most else left)
        if grant <= 0 or grant > left:
            raise TooManyRequests(
                f"the new session requests {grant:,} bytes, the sessions of this key have {sum(granted):,}{still}, and "
                f"the limit of their sum is {quota:,} ({variable('max_key_bytes')}); request less (max_session_bytes) "
                "or delete a session",
                setting=variable("max_key_bytes"), limit=quota, value=sum(granted) + grant, ending=ending,
            )  # fmt: skip
        return (limits or {}) | {"max_session_bytes": grant}
