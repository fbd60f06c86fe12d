"""How many bytes all sessions take in a shared storage, and the limit for that.

A look at all keys takes long, so one server measures for all: the result is in ``usage``, and whoever finds it old
measures anew. Between two measurements a server knows of its own writes only.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final

import msgspec
import structlog

from ..store import DiskUse
from .claims import SESSIONS
from .storage import Storage

USAGE: Final = "usage"
MEASURED_EVERY_S: Final = 600.0
REFUSED_EVERY_S: Final = 30.0
"""How old a measurement may be that refuses something: sessions may have been deleted since."""

log = structlog.get_logger("gradwire.shared")


class _Usage(msgspec.Struct, frozen=True):
    """The content of ``usage``. ``at``: Unix time."""

    nbytes: int
    at: float


class StorageUse(DiskUse):
    """The use of a shared storage by all servers together. May be asked from any thread, and blocks."""

    def __init__(self, storage: Storage, most: int) -> None:
        super().__init__(Path(storage.url), most)
        self._storage = storage
        self._last: _Usage | None = None
        self._measuring = threading.Lock()

    def _look(self) -> int:
        return self._measured(MEASURED_EVERY_S)

    def _look_again(self) -> int | None:
        return self._measured(REFUSED_EVERY_S)

    def _measured(self, age_s: float) -> int:
        """The use as of a measurement of this age at most, with the own writes since."""
        before = 0 if self._last is None else self._last.nbytes
        own = max(self._used + self._added - before, 0)
        if not self._measuring.acquire(blocking=False):
            return before + own  # another thread measures
        try:
            data = self._storage.get(USAGE)
            found = None if data is None else msgspec.json.decode(data, type=_Usage)
            if found is None or time.time() - found.at > age_s:
                found = _Usage(self._storage.used_bytes(SESSIONS), time.time())
                self._storage.put(USAGE, msgspec.json.encode(found))
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("cannot measure the shared storage", reason=str(error))
            return before + own
        finally:
            self._measuring.release()
        if found != self._last:
            self._last, own = found, 0
        return found.nbytes + own
