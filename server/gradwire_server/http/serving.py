"""uvicorn's configuration, and the graceful shutdown."""

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

from ..settings.settings import Settings
from .certificate import keep_renewed
from .connection_limits import protocols
from .state import Server

PING_EVERY_S: Final = 20.0
"""Pings keep proxies from closing idle streams. Pongs are not required, because the Python client has no thread that
sends them while the program is idle. TCP keepalive detects dead peers."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3))

log = structlog.get_logger("gradwire.server")


def configuration(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """uvicorn's configuration for the application."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        **protocols(settings),
        # With compression, an echo of 4 MB takes 496 ms instead of 11.
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
    """The listening socket. Connections inherit its options.

    Raises:
        OSError: when the address is not available.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # not everywhere
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return found


class DrainingServer(uvicorn.Server):
    """Stops in order: report not ready, finish running frames, close streams with 1012, close the listener.

    Args:
        started: called once with the URL when the server accepts connections.
    """

    def __init__(self, app: FastAPI, settings: Settings, started: Callable[[str], None] | None = None) -> None:
        super().__init__(configuration(app, settings))
        self.settings = settings
        self._server: Server = app.state.server
        # A server that lost its sessions can never have them again, but its successor in this place can.
        self._server.registry.on_lapse = lambda why: self.stop()
        self._on_started = started
        self._stop_requested = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.config.ssl is not None:
            self._renewal = self._loop.create_task(keep_renewed(self.settings, self.config.ssl))
        if self.started and self._on_started is not None:
            self._on_started(self.url)
        if self._stop_requested:
            self._start_drain()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._renewal is not None:
            self._renewal.cancel()
        if self.force_exit:  # uvicorn skips the lifespan's shutdown then
            await self.lifespan.shutdown()

    @property
    def url(self) -> str:
        """The server's URL with the actual port."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        return f"{'http' if self.settings.tls_cert is None else 'https'}://{shown}:{port}{self.settings.root_path}"

    def stop(self) -> None:
        """Start a graceful stop; a second call stops at once. Safe in any thread and in a signal handler."""
        if self._stop_requested:
            self.force_exit = self.should_exit = True
            return
        self._stop_requested = True
        if self._loop is not None and self.started:
            self._loop.call_soon_threadsafe(self._start_drain)

    def _start_drain(self) -> None:
        self._drain = asyncio.get_running_loop().create_task(self._drain_and_exit())

    async def _drain_and_exit(self) -> None:
        log.info("stopping; finishing running frames")
        registry = self._server.registry
        registry.drain()
        try:
            await asyncio.wait_for(registry.idle(), self.settings.drain_timeout_s)
        except TimeoutError:
            log.warning("abandoning frames that still run", seconds=self.settings.drain_timeout_s)
        await asyncio.sleep(self.settings.drain_grace_s)
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without re-raising them. uvicorn re-raises, which makes the exit code a failure."""
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
