"""Storage and owners for tests: in memory, with a clock that the test sets, and with operations in a chosen order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradwire_server.durable.disk import Disk
from gradwire_server.durable.shared.home import Home
from gradwire_server.durable.shared.keys import check_key
from gradwire_server.durable.shared.ownership import Observer, OwnerLease
from gradwire_server.durable.shared.shared_store import SharedStore
from gradwire_server.durable.shared.storage import Storage
from gradwire_server.hosting.runner import Runner
from gradwire_server.settings.session_spec import SessionSpec
from tests.server.story import policy, spec


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class MemoryStorage:
    """A storage in a dict. ``before`` is called before each operation, with its name and key."""

    url = "memory"

    def __init__(self, before: Callable[[str, str], None] = lambda name, key: None) -> None:
        self.blobs: dict[str, bytes] = {}
        self.before = before

    def create(self, key: str, data: bytes) -> bool:
        self.before("create", check_key(key))
        return self.blobs.setdefault(key, data) is data

    def put(self, key: str, data: Any) -> None:
        self.before("put", check_key(key))
        self.blobs[key] = data.read_bytes() if isinstance(data, Path) else bytes(data)

    def get(self, key: str) -> bytes | None:
        self.before("get", key)
        return self.blobs.get(key)

    def keys(self, prefix: str) -> list[str]:
        self.before("keys", prefix)
        return sorted(key for key in self.blobs if key.startswith(prefix))

    def children(self, prefix: str) -> list[str]:
        self.before("children", prefix)
        return sorted({key[len(prefix) :].partition("/")[0] for key in self.blobs if key.startswith(prefix)})

    def used_bytes(self, prefix: str) -> int:
        return sum(len(data) for key, data in self.blobs.items() if key.startswith(prefix))

    def delete(self, *keys: str) -> None:
        for key in keys:
            self.before("delete", key)
            self.blobs.pop(key, None)


class Server:
    """One owner of sessions on a storage, without the threads of a real one."""

    def __init__(self, storage: Storage, scratch: Path, disk: Disk | None = None, lease_s: float = 6.0) -> None:
        self.clock = Clock()
        self.lease = OwnerLease(storage, lease_s, self.clock, threads=False)
        self.lease.start()
        self.observer = Observer(storage, self.lease.owner, self.clock)
        self.store = SharedStore(storage, self.lease, scratch / self.lease.owner, self.observer, disk)

    def home(self, session_id: str = "s_story") -> Home:
        return self.store.home(session_id)

    def create(self, durability: Any = "durable", journal_bytes: int = 1 << 30) -> Runner:
        """A new session, published."""
        place = self.home().open(new=True)
        runner = Runner(spec(durability), place.folder, policy=policy(journal_bytes), disk=place.disk, home=self.home())
        runner.publish_epoch()
        return runner

    def take_over(self, session_id: str = "s_story", journal_bytes: int = 1 << 30) -> Runner:
        """Recover a session, published."""
        home = self.home(session_id)
        place = home.open(new=False)
        assert place.folder is not None
        runner = Runner.recover(place.folder, policy=policy(journal_bytes), disk=place.disk, home=home)
        runner.publish_epoch()
        return runner

    def lapse(self) -> None:
        """Let the lease end, without this server knowing."""
        self.clock.now += self.lease.lease_s + 1

    def sees_the_end_of(self, other: Server) -> None:
        """Let the other one's lease end, and watch it for long enough."""
        other.lapse()
        self.observer.ended(other.lease.owner)
        for _ in range(3):  # its own lease goes on meanwhile
            self.clock.now += self.lease.lease_s / 2
            assert self.lease.renew()
        assert self.observer.ended(other.lease.owner)


def spec_of(name: str, **more: Any) -> SessionSpec:
    return SessionSpec(id=name, tenant="somebody", durability="durable", created=1.0, **more)


class Turns:
    """Runs threads one operation at a time, in an order that the test chooses."""

    def __init__(self) -> None:
        self._waiting: dict[str, threading.Semaphore] = {}
        self._paused: dict[str, threading.Semaphore] = {}
        self._over: set[str] = set()
        self.failures: list[BaseException] = []

    def add(self, name: str, work: Callable[[], None]) -> None:
        """Add a thread; it waits for its first turn."""
        self._waiting[name], self._paused[name] = threading.Semaphore(0), threading.Semaphore(0)

        def run() -> None:
            self._waiting[name].acquire()
            try:
                work()
            except BaseException as error:
                self.failures.append(error)
            self._over.add(name)
            self._paused[name].release()

        threading.Thread(target=run, name=name, daemon=True).start()

    def pause(self, *_: str) -> None:
        """Called by the threads between two operations."""
        name = threading.current_thread().name
        if name in self._waiting:
            self._paused[name].release()
            self._waiting[name].acquire()

    @property
    def alive(self) -> list[str]:
        return [name for name in self._waiting if name not in self._over]

    def step(self, name: str) -> None:
        """Let a thread go on to its next operation."""
        self._waiting[name].release()
        assert self._paused[name].acquire(timeout=60)
