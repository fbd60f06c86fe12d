"""Where a process takes the connections of ranks, for all its sessions."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from typing import Final

import structlog

from . import messages
from .peer_link import PeerLink

HELLO_S: Final = 5.0

log = structlog.get_logger("gradwire.groups")

Key = tuple[str, int]
"""The secret of a group, and a rank of this process."""


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
            threading.Thread(target=self._serve, args=(connection,), name="rank", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(HELLO_S)
            hello = messages.greeted(messages.read(messages.tuned(connection), messages.MAX_HELLO_BYTES))
            with self._lock:
                links = self._ranks.get((hello.secret, hello.receiver), {})
            link = links.get(hello.sender)
            if link is None:
                raise ValueError(f"rank {hello.receiver} of this group is not here")
            link.accept(connection, hello)
        except (OSError, ValueError) as error:
            log.debug("connection of a rank refused", reason=str(error))
        finally:
            with contextlib.suppress(OSError):
                connection.close()


SHARED: Final = Listener()
"""The listener of this process."""
