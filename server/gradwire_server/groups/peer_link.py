"""The connection of one rank to another, in both directions. It may break and come again without a loss: messages are
numbered, and what the other side has not committed is sent again.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog

from gradwire_engine.runtime.groups import Group, Sent

from . import messages
from .messages import Hello, Incoming, Kind

RETRY_S: Final = 0.1
CONNECT_S: Final = 5.0
FAREWELL_S: Final = 5.0
"""How long what a lost peer has sent may still take to arrive."""
DETACHED: Final = float("-inf")
"""The time at which a link closes that has been detached."""
LINGER_S: Final = 30.0
"""How long a closed link waits until the other side has everything."""

log = structlog.get_logger("gradwire.groups")


class PeerLink:
    """One rank's link to a peer. The rank with the higher number connects, the other one accepts.

    Three threads meet here: the session's, which posts and takes; a writer; and a reader for each connection. The
    reader never waits for the session, so two ranks that send to each other at once do not block each other.

    Args:
        address: where the peer listens; looked up again for each attempt to connect.

    Attributes:
        wire_bytes: of all messages with data that were written, headers and repetitions included.
        reconnects: how often the connection came again.
    """

    def __init__(self, group: Group, peer: int, secret: str, address: Callable[[], tuple[str, int]]) -> None:
        self.group, self.peer = group, peer
        self._secret, self._address = secret, address
        # Two conditions over one lock: what arrives wakes the session's thread, and not those that write and connect.
        lock = threading.RLock()
        self._state, self._came = threading.Condition(lock), threading.Condition(lock)
        self._write = threading.Lock()
        self._connection: socket.socket | None = None
        self._inbox: deque[Incoming] = deque()
        self._arrived = group.received[peer]
        self._written = 0
        self._posted = group.sent[peer]
        self._acknowledged = 0
        self._committed = group.received[peer]
        self._due: dict[Kind, int] = {}
        self._failure: tuple[int, str] | None = None
        self._lost: tuple[int, str] | None = None
        self._lost_at = 0.0
        self._reason = ""
        self._closing = 0.0
        self.wire_bytes = 0
        self.reconnects = -1
        self._writer = threading.Thread(target=self._run_writer, name=f"rank-{group.rank}-to-{peer}", daemon=True)
        self._writer.start()
        if group.rank > peer:
            threading.Thread(target=self._run_connector, name=f"rank-{group.rank}-dials-{peer}", daemon=True).start()

    @property
    def connected(self) -> bool:
        return self._connection is not None

    # The session's thread

    def post(self) -> None:
        """The outbox has a new message: it goes out here if nothing is in its way, else by the writer."""
        with self._state:
            self._posted = self.group.sent[self.peer]
            if self._connection is None or self._written != self._posted - 1 or self._due:
                self._state.notify_all()
                return
        if self._write.acquire(blocking=False):
            try:
                self._write_next()
            finally:
                self._write.release()
            with self._state:
                if self._has_work():
                    self._state.notify_all()

    def take(self, timeout_s: float) -> Incoming | None:
        """The next message, a ``FAILED`` one if the peer gave up; ``None`` after the timeout."""
        with self._state:
            if not self._inbox and self._failure is None and timeout_s:
                self._came.wait(timeout_s)
            if self._inbox:
                return self._inbox.popleft()
            found = self.failure()
            return None if found is None else Incoming(Kind.FAILED, *found, memoryview(b""))

    def failure(self) -> tuple[int, str] | None:
        """The rank that does not take part any more, and why; ``None`` while the peer does."""
        with self._state:
            if self._failure is None and self._lost is not None and time.monotonic() > self._lost_at + FAREWELL_S:
                self._failure = self._lost
            return self._failure

    def acknowledged(self, number: int, timeout_s: float) -> bool:
        """Whether the peer's host has this message, or will never have it."""
        with self._state:
            if self._acknowledged < number and self._failure is None:
                self._came.wait(timeout_s)
            return self._acknowledged >= number

    def committed(self, number: int) -> None:
        """The peer need not keep its messages up to this one."""
        with self._state:
            if number > self._committed:
                self._committed = self._due[Kind.COMMITTED] = number
                self._state.notify_all()

    # Any thread

    def lost(self, rank: int, reason: str) -> None:
        """The peer will not come any more. What it has sent may still be on its way, until its connection ends."""
        with self._state:
            self._lost, self._lost_at = (rank, reason), time.monotonic()
            if self._connection is None and self.reconnects >= 0:
                self._failure = self._failure or self._lost
            self._came.notify_all()
            self._state.notify_all()

    def fail(self, reason: str) -> None:
        """Tell the peer that this rank gives up, after all that was posted before."""
        with self._state:
            self._reason = reason[: messages.MAX_TEXT_BYTES // 4]
            self._due[Kind.FAILED] = self.group.rank
            self._state.notify_all()

    def close(self) -> None:
        """End the link as soon as the peer has everything, or does not take it."""
        with self._state:
            self._closing = time.monotonic() + LINGER_S
            self._state.notify_all()

    def ended(self) -> None:
        """Wait until a link that is closed has ended."""
        self._writer.join()

    def detach(self) -> None:
        """End the link at once; the peer is to find this rank elsewhere."""
        with self._state:
            self._closing = DETACHED
            connection, self._connection = self._connection, None
            self._state.notify_all()
        if connection is not None:
            _close(connection)

    def drop(self) -> None:
        """Break the connection, which comes again: the peer has moved."""
        connection = self._connection
        if connection is not None:
            self._broken(connection)

    # Connections

    def _run_connector(self) -> None:
        while not self._over():
            with self._state:
                if self._connection is not None:
                    self._state.wait(RETRY_S * 10)
                    continue
            try:
                with contextlib.ExitStack() as undo:
                    connection = undo.enter_context(socket.create_connection(self._address(), CONNECT_S))
                    hello = self._introduce(messages.tuned(connection))
                    connection.settimeout(None)
                    undo.pop_all()
            except (OSError, ValueError) as error:
                log.debug("rank not reached", peer=self.peer, reason=str(error))
                time.sleep(RETRY_S)
                continue
            self._install(connection, hello.expected)
            self._read_until_broken(connection)

    def _introduce(self, connection: socket.socket) -> Hello:
        """Begin a connection, and have both sides prove that they know the secret. Returns the peer's hello."""
        own, deadline = self._hello(), time.monotonic() + CONNECT_S
        connection.sendall(messages.greeting(own))
        hello = messages.greeted(messages.read(connection, messages.MAX_HELLO_BYTES, deadline))
        self._check(hello)
        self._check_proof(hello.proof, own, hello)
        own.proof = messages.proof(self._secret, own, hello, self.group.rank)
        connection.sendall(messages.greeting(own))
        return hello

    def check_peer(self, connection: socket.socket, hello: Hello, deadline: float) -> None:
        """Have the other side of a connection prove that it is the peer, and prove to it that this is its rank.

        Raises:
            OSError: when it does not before the deadline.
            ValueError: when it is not.
        """
        self._check(hello)
        own = self._hello()
        own.proof = messages.proof(self._secret, hello, own, self.group.rank)
        connection.sendall(messages.greeting(own))
        again = messages.greeted(messages.read(connection, messages.MAX_HELLO_BYTES, deadline))
        self._check_proof(again.proof, hello, own)

    def _check_proof(self, shown: str, connecting: Hello, accepting: Hello) -> None:
        expected = messages.proof(self._secret, connecting, accepting, self.peer)
        if not hmac.compare_digest(expected.encode(), shown.encode()):
            raise ValueError(f"the other side does not know the secret of rank {self.peer}")

    def accept(self, connection: socket.socket, hello: Hello) -> None:
        """Use a connection of the peer; returns when it is broken."""
        connection.settimeout(None)
        self._install(connection, hello.expected)
        self._read_until_broken(connection)

    def _hello(self) -> Hello:
        return Hello(
            messages.group_of(self._secret), self.group.rank, self.peer, self._arrived + 1, secrets.token_urlsafe(16)
        )  # fmt: skip

    def _check(self, hello: Hello) -> None:
        named = (messages.group_of(self._secret), self.peer, self.group.rank)
        if (hello.group, hello.sender, hello.receiver) != named:
            raise ValueError(f"the connection is not of rank {self.peer}")

    def _install(self, connection: socket.socket, expected: int) -> None:
        old = self._connection
        if old is not None:
            _close(old)  # or a write to it would not end
        with self._write, self._state:
            if self._closing == DETACHED:
                _close(connection)
                return
            self._connection = connection
            self._written = expected - 1  # the writer looks for what follows in the outbox
            self.reconnects += 1
            self._due[Kind.COMMITTED] = self._committed
            if self._reason:
                self._due[Kind.FAILED] = self.group.rank
            self._state.notify_all()

    def _broken(self, connection: socket.socket) -> None:
        with self._state:
            if self._connection is connection:
                self._connection = None
                self._failure = self._failure or self._lost
                self._came.notify_all()
                self._state.notify_all()
        _close(connection)

    def _read_until_broken(self, connection: socket.socket) -> None:
        try:
            while (message := messages.read(connection)) is not None:
                self._received(message)
        except (OSError, ValueError) as error:
            log.debug("connection of ranks broken", peer=self.peer, reason=str(error))
        finally:
            self._broken(connection)

    def _received(self, message: Incoming) -> None:
        kind, number = message.kind, message.number
        if kind is Kind.COMMITTED:
            self.group.forget(self.peer, number)
        with self._state:
            if kind in (Kind.DATA, Kind.AWAITED):
                if number == self._arrived + 1:
                    self._arrived = number
                    self._inbox.append(message)
                if kind is Kind.AWAITED:
                    self._due[Kind.RECEIVED] = max(self._due.get(Kind.RECEIVED, 0), number)
                    self._state.notify_all()
            elif kind is Kind.FAILED:
                self._failure = self._failure or (number, message.text)
            elif kind is Kind.RECEIVED:
                self._acknowledged = max(self._acknowledged, number)
            self._came.notify_all()

    # The writer

    def _run_writer(self) -> None:
        while True:
            with self._state:
                while not self._has_work():
                    if self._over():
                        connection, self._connection = self._connection, None
                        if connection is not None:
                            _close(connection)
                        return
                    self._state.wait(None if not self._closing else RETRY_S)
            with self._write:
                self._write_next()

    def _has_work(self) -> bool:
        return self._connection is not None and (bool(self._due) or self._written < self._posted)

    def _over(self) -> bool:
        if not self._closing:
            return False
        over = self.group.failed or self._failure is not None or not self.group.outbox[self.peer]
        return (not self._has_work() and bool(over)) or time.monotonic() > self._closing

    def _write_next(self) -> None:
        """Write the next message of the outbox, or what else is due. Needs the write lock."""
        with self._state:
            connection, due, after = self._connection, self._due, self._written
            self._due = {}
        if connection is None:
            with self._state:
                self._due = due | self._due
            return
        failed = due.pop(Kind.FAILED, None)
        try:
            for kind, number in due.items():
                connection.sendall(messages.head(kind, number))
            sent = self._next_after(after)
            if sent is not None:
                text = sent.what.encode()[: messages.MAX_TEXT_BYTES]
                kind = Kind.AWAITED if sent.awaited else Kind.DATA
                _send(connection, messages.head(kind, sent.number, text, len(sent.data)), sent.data)
                with self._state:
                    self._written = sent.number
                    self.wire_bytes += messages.HEADER_BYTES + len(text) + len(sent.data)
                    if failed is not None:  # it follows all data
                        self._due[Kind.FAILED] = failed
            elif failed is not None:
                connection.sendall(messages.head(Kind.FAILED, failed, self._reason.encode()))
        except OSError:
            with self._state:
                self._due = due | self._due
            self._broken(connection)

    def _next_after(self, number: int) -> Sent | None:
        with self.group.lock:
            box = self.group.outbox[self.peer]
            if not box or box[-1].number <= number:
                with self._state:
                    self._written = max(self._written, self._posted)
                return None
            at = max(number + 1 - box[0].number, 0)
            if box[0].number > number + 1:
                log.warning("a rank needs messages that are gone", peer=self.peer, number=number + 1)
                self.lost(self.group.rank, f"rank {self.peer} needs message {number + 1}, which is not kept any more")
                return None
            return box[at]


def _send(connection: socket.socket, header: bytes, data: bytes | memoryview) -> None:
    if len(data) < 1 << 14:
        connection.sendall(header + data)
        return
    sent = connection.sendmsg([header, data])
    if sent < len(header):
        connection.sendall(header[sent:])
        sent = len(header)
    if sent < len(header) + len(data):
        connection.sendall(memoryview(data)[sent - len(header) :])


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
