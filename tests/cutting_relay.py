"""A TCP relay that cuts or stalls its connections after a given number of bytes, for tests of reconnection."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

NO_LINGER: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Cut:
    """Where and how a connection ends.

    Attributes:
        after: bytes that still pass.
        direction: what is counted: bytes ``up`` to the server, ``down`` to the client, or ``both``.
        how: ``fin`` closes in order, ``rst`` resets, ``stall`` lets nothing pass any more and stays open.
    """

    after: int
    direction: Literal["up", "down", "both"] = "both"
    how: Literal["fin", "rst", "stall"] = "fin"


@dataclass
class Passed:
    """Bytes that passed through one connection."""

    up: int = 0
    down: int = 0

    def of(self, direction: str) -> int:
        return self.up + self.down if direction == "both" else int(getattr(self, direction))


@dataclass
class CuttingRelay:
    """Forwards one connection after another to a port; the n-th ends as ``cuts[n]`` says. A number is a cut after so
    many bytes, in both directions together. Connections beyond the list are left alone.
    """

    target: int
    cuts: Sequence[int | Cut | None] = ()
    passed: list[Passed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left = iter(self.cuts)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._closed = threading.Event()
        self._blocked = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def made(self) -> int:
        """How many connections were made."""
        return len(self.passed)

    def plan(self, cuts: Sequence[int | Cut | None]) -> None:
        """Begin again, with these cuts for the connections that follow."""
        with self._lock:
            self._left = iter(cuts)
            self.passed.clear()

    def block(self) -> None:
        """End all connections, and those that are made from now on at once."""
        self._blocked.set()

    def unblock(self) -> None:
        """Let connections through again."""
        self._blocked.clear()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._blocked.is_set():
                client.close()
                continue
            with self._lock:
                cut, passed = next(self._left, None), Passed()
                self.passed.append(passed)
            cut = Cut(cut) if isinstance(cut, int) else cut
            threading.Thread(target=self._forward, args=(client, cut, passed), daemon=True).start()

    def _forward(self, client: socket.socket, cut: Cut | None, passed: Passed) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:  # the server is down: so is this connection
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, server, contextlib.suppress(OSError):  # either side may have gone
            self._pass_on(client, server, cut, passed)
            if cut is not None and self._over(cut, passed):
                self._end(cut, client, server)

    def _over(self, cut: Cut, passed: Passed) -> bool:
        return passed.of(cut.direction) >= cut.after

    def _pass_on(self, client: socket.socket, server: socket.socket, cut: Cut | None, passed: Passed) -> None:
        ways: dict[Any, tuple[socket.socket, str]] = {client: (server, "up"), server: (client, "down")}
        while not self._closed.is_set() and not (cut is not None and self._over(cut, passed)):
            readable = select.select([client, server], [], [], 0.05)[0]
            if self._blocked.is_set():
                return
            for source in readable:
                sink, way = ways[source]
                most = 65536
                if cut is not None and cut.direction in (way, "both"):
                    most = min(most, cut.after - passed.of(cut.direction))
                    if not most:
                        return
                data = source.recv(most)
                if not data:
                    return
                sink.sendall(data)
                setattr(passed, way, getattr(passed, way) + len(data))

    def _end(self, cut: Cut, client: socket.socket, server: socket.socket) -> None:
        if cut.how == "rst":
            for end in (client, server):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        elif cut.how == "stall":
            self._closed.wait(60)

    def close(self) -> None:
        self._closed.set()
        self._listener.close()


@contextlib.contextmanager
def cutting_relay(port: int, cuts: Sequence[int | Cut | None] = ()) -> Iterator[CuttingRelay]:
    relay = CuttingRelay(port, cuts)
    try:
        yield relay
    finally:
        relay.close()
