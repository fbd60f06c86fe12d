"""The process around the application: uvicorn's configuration, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

import structlog
import uvicorn
from fastapi import FastAPI

from ..settings import Settings
from ..state import Server
from .certificate import keep_renewed
from .reception import protocols

PING_EVERY_S: Final = 20.0
"""Keeps proxies from closing quiet streams. Pongs are not insisted on: the Python client has no thread to send
them while the program is quiet. Dead peers are found by TCP."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3))

log = structlog.get_logger("gradwire.server")


def configuration(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        **protocols(settings),
        # Compression turns an 11 ms echo of 4 MB into 496 ms.
        ws_per_message_deflate=False,
        ws_max_size=settings.max_message_bytes,
        ws_ping_interval=PING_EVERY_S,
        ws_ping_timeout=None,
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=5,
    )


def listen(settings: Settings) -> socket.socket:
    """The listening socket. What it is set to, connections inherit.

    Raises:
        OSError: when the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # not everywhere
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return found


class DrainingServer(uvicorn.Server):
    """Stops in order: not ready any more, frames that run finish, streams close with 1012, then the listener.

    Args:
        started: called once, with the URL, when the server accepts connections.
    """

    def __init__(self, app: FastAPI, settings: Settings, started: Callable[[str], None] | None = None) -> None:
        super().__init__(configuration(app, settings))
        self.settings = settings
        self._parts: Server = app.state.server
        self._told = started
        self._stop_asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.config.ssl is not None:
            self._renewal = self._loop.create_task(keep_renewed(self.settings, self.config.ssl))
        if self.started and self._told is not None:
            self._told(self.url)
        if self._stop_asked:
            self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._renewal is not None:
            self._renewal.cancel()
        if self.force_exit:  # uvicorn leaves the sessions open then
            await self.lifespan.shutdown()

    @property
    def url(self) -> str:
        """Where the server listens, with the port it has got."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        return f"{'http' if self.settings.tls_cert is None else 'https'}://{shown}:{port}{self.settings.root_path}"

    def stop(self) -> None:
        """Begin to stop; called again, stop at once. From any thread, and from a signal handler."""
        if self._stop_asked:
            self.force_exit = self.should_exit = True
            return
        self._stop_asked = True
        if self._loop is not None and self.started:
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        self._drain = asyncio.get_running_loop().create_task(self._drain_and_exit())

    async def _drain_and_exit(self) -> None:
        log.info("stopping: finishing what runs")
        registry = self._parts.registry
        registry.drain()
        try:
            await asyncio.wait_for(registry.idle(), self.settings.drain_timeout_s)
        except TimeoutError:
            log.warning("frames still run: giving up on them", seconds=self.settings.drain_timeout_s)
        await asyncio.sleep(self.settings.drain_grace_s)
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn raises a signal again when it has stopped, which makes the exit code one of failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.stop()
