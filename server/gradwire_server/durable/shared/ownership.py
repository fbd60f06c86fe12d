"""The lease of an owner, one incarnation of a server process, and the end of other owners.

An owner may act until ``lease_s`` after it *began* to write its counter. Whoever sees the counter unchanged for longer
than that on its own clock may certify the owner's end. So no clocks are compared, and an owner never acts after its
certified end.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
import structlog

from gradwire_protocol.errors import Unavailable

from .storage import Storage

OWNERS: Final = "owners/"
ENDED: Final = ".ended"

LEASE_S: Final = 6.0
RENEWALS: Final = 3
"""How many renewals fall into one lease."""

SLACK: Final = 1.1
"""How much faster than an owner's clock an observer's may run."""

MARGIN_S: Final = 1.0
"""How old the value of a read may be when it is sent: caches of network file systems, and the granularity of clocks."""

SPENT_S: Final = 30 * 86400.0
"""How long the certificate of an owner's end is kept after its counter was removed."""

LAPSED: Final = "ownership"

Clock = Callable[[], float]

log = structlog.get_logger("gradwire.ownership")


class OwnershipLost(Unavailable):
    """This process no longer owns the session; another process may have it already."""


def ownership_lost(why: str) -> OwnershipLost:
    """The error for clients, which reconnect."""
    return OwnershipLost(f"this server no longer owns the session ({why}); connect again", reason=LAPSED)


def boot_clock() -> float:
    """Seconds since the machine's start, including the time for which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class _Lease(msgspec.Struct, frozen=True):
    """The content of ``owners/<owner>``."""

    counter: int
    lease_s: float
    host: str = ""


class _Ended(msgspec.Struct, frozen=True):
    """The content of ``owners/<owner>.ended``."""

    at: float
    by: str


class OwnerLease:
    """The lease of this process. All methods may be called from any thread.

    Args:
        clock: seconds that pass while the process or the machine is stopped, too.
        threads: whether threads renew the lease and watch its end; tests call :meth:`renew` themselves.

    Attributes:
        owner: the random id of this incarnation.
        on_lapse: called once, from any thread, when the lease has ended without :meth:`end`.
    """

    def __init__(
        self, storage: Storage, lease_s: float = LEASE_S, clock: Clock = boot_clock, threads: bool = True
    ) -> None:
        self.owner = "o_" + secrets.token_hex(8)
        self.lease_s = lease_s
        self.on_lapse: Callable[[str], None] = lambda why: None
        self._storage = storage
        self._clock = clock
        self._counter = 0
        self._until = 0.0
        self._over = ""
        """Why the lease has ended."""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = threads
        self._renewer: threading.Thread | None = None

    def start(self) -> None:
        """Begin the lease.

        Raises:
            OSError: when the storage is unreachable.
        """
        began = self._clock()
        self._write()
        self._until = began + self.lease_s
        if self._threads:
            self._renewer = threading.Thread(target=self._keep_renewing, name="gradwire-lease", daemon=True)
            self._renewer.start()
            # A second thread, because a renewal may hang on a dead network.
            threading.Thread(target=self._watch, name="gradwire-lease-end", daemon=True).start()

    @property
    def valid(self) -> bool:
        """Whether this process may act as the owner now."""
        if not self._over and self._clock() >= self._until:
            self._lapse(f"its lease of {self.lease_s:g} s was not renewed in time")
        return not self._over

    @property
    def lapsed(self) -> str | None:
        """Why the lease has ended; ``None`` while it is valid."""
        return None if self.valid else self._over

    def check(self) -> None:
        """Check that this process may act as the owner now.

        Raises:
            OwnershipLost: when it may not, and never may again.
        """
        if not self.valid:
            raise ownership_lost(self._over)

    def renew(self) -> bool:
        """Renew the lease. Returns whether it is valid.

        Raises:
            OSError: when the storage is unreachable; the lease keeps its end.
        """
        if not self.valid:
            return False
        began = self._clock()
        self._write()
        if self._storage.get(OWNERS + self.owner + ENDED) is not None:
            self._lapse("another process certified its end")
            return False
        # The former lease must have lasted until now; else an observer may have seen its end.
        if not self.valid:
            return False
        with self._lock:
            self._until = began + self.lease_s
        return True

    def _write(self) -> None:
        self._counter += 1
        lease = _Lease(self._counter, self.lease_s, socket.gethostname())
        self._storage.put(OWNERS + self.owner, msgspec.json.encode(lease))

    def end(self) -> None:
        """End the lease on purpose, after all sessions are released, and certify that."""
        with self._lock:
            over, self._over = self._over, self._over or "the server stopped"
        self._stop.set()
        if self._renewer is not None:
            self._renewer.join(1.0)
        if over:
            return
        try:
            certify(self._storage, self.owner, self.owner)
        except OSError as error:
            log.warning("cannot certify the end of this server's lease", owner=self.owner, reason=str(error))

    def _lapse(self, why: str) -> None:
        with self._lock:
            if self._over:
                return
            self._over = why
        self._stop.set()
        log.error("this server lost the ownership of its sessions", owner=self.owner, reason=why)
        self.on_lapse(why)

    def _keep_renewing(self) -> None:
        while not self._stop.wait(self.lease_s / RENEWALS):
            try:
                self.renew()
            except OSError as error:
                log.warning("cannot renew the lease", owner=self.owner, reason=str(error))

    def _watch(self) -> None:
        while not self._stop.wait(min(max(self._until - self._clock(), 0.01), self.lease_s / RENEWALS)):
            if not self.valid:
                return


class _Seen(NamedTuple):
    """A counter, and when the answer of the first read that saw it had come."""

    counter: int
    at: float


class Observer:
    """Tells whether other owners have ended, by what it saw of their counters."""

    def __init__(self, storage: Storage, name: str, clock: Clock = boot_clock) -> None:
        self._storage = storage
        self._name = name
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def ended(self, owner: str) -> bool:
        """Whether an owner has ended. Certifies the end when its counter was unchanged for long enough.

        An owner without a counter has ended, too: it wrote the counter before anything else, and only a sweep that
        found its certificate removes it.

        Raises:
            OSError: when the storage is unreachable.
        """
        if self._storage.get(OWNERS + owner + ENDED) is not None:
            self._seen.pop(owner, None)
            return True
        # The counter had this value at some time between the two. A wait begins after its first read was answered, and
        # has lasted only until its last read was sent: this thread may have been stopped during either.
        before = self._clock()
        data = self._storage.get(OWNERS + owner)
        after = self._clock()
        if data is None:
            return True
        lease = msgspec.json.decode(data, type=_Lease)
        seen = self._seen.get(owner)
        if seen is None or seen.counter != lease.counter:
            self._seen[owner] = _Seen(lease.counter, after)
            return False
        if before - seen.at < lease.lease_s * SLACK + MARGIN_S:
            return False
        certify(self._storage, owner, self._name)
        self._seen.pop(owner, None)  # another thread may have certified it at the same time
        return True

    def counter(self, owner: str) -> int | None:
        """The counter as :meth:`ended` saw it last."""
        seen = self._seen.get(owner)
        return None if seen is None else seen.counter

    def watch_s(self, owner: str) -> float:
        """How long to watch an owner until :meth:`ended` is certain, if it has ended."""
        data = self._storage.get(OWNERS + owner)
        lease_s = LEASE_S if data is None else msgspec.json.decode(data, type=_Lease).lease_s
        return lease_s * SLACK + MARGIN_S

    def sweep(self, now: float) -> None:
        """Certify the ends of owners, and remove what is left of those that ended; ``now`` is Unix time.

        Raises:
            OSError: when the storage is unreachable.
        """
        names = self._storage.children(OWNERS)
        for owner in (name for name in names if not name.endswith(ENDED)):
            if self.ended(owner):
                self._storage.delete(OWNERS + owner)
        for name in (name for name in names if name.endswith(ENDED)):
            data = self._storage.get(OWNERS + name)
            if data is not None and now - msgspec.json.decode(data, type=_Ended).at > SPENT_S:
                self._storage.delete(OWNERS + name)


def certify(storage: Storage, owner: str, by: str) -> None:
    """Certify that an owner has ended: its lease is over, or its process is known to have ended.

    Raises:
        OSError: when the storage is unreachable.
    """
    if storage.create(OWNERS + owner + ENDED, msgspec.json.encode(_Ended(time.time(), by))):
        log.info("the end of an owner is certain", owner=owner, by=by)
