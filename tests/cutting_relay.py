"""A TCP relay that cuts its connections after a given number of bytes, for tests of reconnection."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator


class CuttingRelay:
    """Forwards one connection after another to a port; the n-th is cut after ``cuts[n]`` bytes in either direction.

    Connections beyond the list are left alone.
    """

    def __init__(self, port: int, cuts: list[int]) -> None:
        self._target = port
        self._cuts = iter(cuts)
        self.made = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        self.made += 1
        budget = next(self._cuts, None)
        server = socket.create_connection(("127.0.0.1", self._target))
        other = {client: server, server: client}
        with client, server, contextlib.suppress(OSError):  # either side may have gone
            while not self._closed.is_set():
                for source in select.select([client, server], [], [], 0.2)[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    if budget is not None:
                        data, budget = data[:budget], budget - len(data)
                    other[source].sendall(data)
                    if budget is not None and budget <= 0:
                        return

    def close(self) -> None:
        self._closed.set()
        self._listener.close()


@contextlib.contextmanager
def cutting_relay(port: int, cuts: list[int]) -> Iterator[CuttingRelay]:
    relay = CuttingRelay(port, cuts)
    try:
        yield relay
    finally:
        relay.close()
