"""The last log lines of each session, for its owner.

Only lines that name the session, and of these only plain fields: no tracebacks, no client addresses.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import MutableMapping
from typing import Any, Final

LINES_KEPT: Final = 50
SESSIONS_KEPT: Final = 2_000
VALUE_CHARS: Final = 300
HIDDEN: Final = frozenset({"exc_info", "stack_info", "session", "tenant", "event", "level", "timestamp", "logger"})


class SessionLog:
    """Keeps log lines in memory. A structlog processor; thread-safe."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[dict[str, Any]]] = OrderedDict()

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Keep the line, if it names a session, and pass it on."""
        name = event.get("session")
        if type(name) is str:
            lines = self._lines.get(name)
            if lines is None:
                lines = self._lines.setdefault(name, deque(maxlen=LINES_KEPT))
                while len(self._lines) > SESSIONS_KEPT:
                    self._lines.popitem(last=False)
            facts = {
                key: value if isinstance(value, (int, float, bool)) else str(value)[:VALUE_CHARS]
                for key, value in event.items()
                if key not in HIDDEN and isinstance(value, (str, int, float, bool))
            }
            lines.append({
                "at": str(event.get("timestamp", "")), "level": str(event.get("level", "info")),
                "event": str(event.get("event", ""))[:VALUE_CHARS], "facts": facts,
            })  # fmt: skip
        return event

    def of(self, session: str) -> list[dict[str, Any]]:
        """The lines of a session, the latest first."""
        return list(reversed(self._lines.get(session, ())))


RECENT: Final = SessionLog()
"""The lines of this process."""
