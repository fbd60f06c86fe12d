"""How many sessions a key may have, and how much memory they may be allowed.

A session's memory limit is a promise: the engine holds it, wherever the session runs. So the promises of a tenant
together are its memory quota, checked when a session begins. No session can then grow beyond what is left, and nobody
has to ask anybody while it does. A session that does not say how much it wants is promised an even share where the
number of sessions is limited, else what is left; never more than ``max_session_bytes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradwire_protocol.errors import TooManyRequests

from ..settings import Settings, variable
from .keys import Key


class Quotas:
    """The sessions that begin at this moment count, too: two requests at once cannot both have the last place."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._beginning: dict[str, list[int]] = {}

    @contextmanager
    def room(
        self, key: Key, promised: list[int], limits: dict[str, int] | None, ending: int = 0
    ) -> Iterator[dict[str, int] | None]:
        """Make room for one more session while it is made. Gives the limits that it shall have.

        Args:
            promised: the memory limits of the tenant's sessions.
            limits: what was asked for.
            ending: how many of the sessions have ended and still compute.

        Raises:
            TooManyRequests: when the key has as much as it may.
        """
        beginning = self._beginning.setdefault(key.tenant, [])
        wanted = self._promise(key, [*promised, *beginning], limits, ending)
        size = 0 if wanted is None else wanted.get("max_session_bytes", 0)
        beginning.append(size)
        try:
            yield wanted
        finally:
            beginning.remove(size)
            if not beginning:
                self._beginning.pop(key.tenant, None)

    def _promise(
        self, key: Key, promised: list[int], limits: dict[str, int] | None, ending: int
    ) -> dict[str, int] | None:
        still = f", {ending} of them deleted or expired and still computing" if ending else ""
        most = key.quota("max_key_sessions", self.settings)
        if most and len(promised) >= most:
            raise TooManyRequests(
                f"this key has {len(promised)} sessions{still}, it may have {most} ({variable('max_key_sessions')}): "
                "delete one, or wait for one to expire",
                setting=variable("max_key_sessions"), limit=most, value=len(promised), ending=ending,
            )  # fmt: skip
        quota = key.quota("max_key_bytes", self.settings)
        if not quota:
            return limits
        left = quota - sum(promised)
        wanted = (limits or {}).get("max_session_bytes")
        if wanted is None:
            wanted = min(self.settings.max_session_bytes, quota // most if most else left)
        if wanted <= 0 or wanted > left:
            raise TooManyRequests(
                f"the sessions of this key are allowed {sum(promised):,} bytes together{still}, this one wants "
                f"{wanted:,} more, and the key has {quota:,} ({variable('max_key_bytes')}): ask for less "
                "(max_session_bytes), or delete a session",
                setting=variable("max_key_bytes"), limit=quota, value=sum(promised) + wanted, ending=ending,
            )  # fmt: skip
        return (limits or {}) | {"max_session_bytes": wanted}
