"""Where a process takes the connections of ranks, for all its sessions."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from typing import Final

import structlog

from . import messages
from .peer_link import PeerLink

HELLO_S: Final = 5.0
"""For the proofs of both sides together."""

MAX_UNPROVED: Final = 64
"""Connections that have not proved to be ranks; the oldest gives way."""


log = structlog.get_logger("gradwire.groups")

Key = tuple[str, int]
"""What stands for a group, and a rank of this process."""


class Listener:
    """One listening socket, opened with the first group.

    Args:
        host: the address to listen at: of the loopback interface, or of one that the other machines reach.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._ranks: dict[Key, Mapping[int, PeerLink]] = {}
        self._unproved: dict[socket.socket, None] = {}

    @property
    def address(self) -> tuple[str, int]:
        """Where other ranks connect to."""
        with self._lock:
            if self._socket is None:
                self._socket = socket.create_server((self.host, 0), backlog=128)
                threading.Thread(target=self._run, args=(self._socket,), name="ranks", daemon=True).start()
            host, port = self._socket.getsockname()[:2]
            return host, port

    def register(self, key: Key, links: Mapping[int, PeerLink]) -> None:
        """Give connections for this rank to its links."""
        with self._lock:
            self._ranks[key] = links

    def forget(self, key: Key, links: Mapping[int, PeerLink]) -> None:
        """Give no new connections to these links."""
        with self._lock:
            if self._ranks.get(key) is links:
                del self._ranks[key]

    def _run(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with self._lock:
                self._unproved[connection] = None
                oldest = next(iter(self._unproved)) if len(self._unproved) > MAX_UNPROVED else None
            if oldest is not None:
                self._end(oldest)
            threading.Thread(target=self._serve, args=(connection,), name="rank", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            deadline = time.monotonic() + HELLO_S
            hello = messages.greeted(messages.read(messages.tuned(connection), messages.MAX_HELLO_BYTES, deadline))
            with self._lock:
                links = self._ranks.get((hello.group, hello.receiver), {})
            link = links.get(hello.sender)
            if link is None:
                raise ValueError(f"rank {hello.receiver} of this group is not here")
            link.check_peer(connection, hello, deadline)
            with self._lock:
                if connection not in self._unproved:
                    return
                del self._unproved[connection]
            link.accept(connection, hello)
        except (OSError, ValueError) as error:
            log.debug("connection of a rank refused", reason=str(error))
        finally:
            self._end(connection)
            with contextlib.suppress(OSError):
                connection.close()

    def _end(self, connection: socket.socket) -> None:
        """Wake the thread of a connection, which closes it."""
        with self._lock:
            self._unproved.pop(connection, None)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


SHARED: Final = Listener()
"""The listener of this process."""
