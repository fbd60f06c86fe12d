"""Real servers for tests, on a free port of 127.0.0.1: in a thread of this process, or as a separate process."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import structlog
import uvloop

from gradwire_server.app import create_app
from gradwire_server.auth.passes import PassVerifier
from gradwire_server.http.redirector import Redirector
from gradwire_server.http.serving import DrainingServer, listen
from gradwire_server.settings.settings import Settings

ROOT = Path(__file__).parents[1]
SOURCES = os.pathsep.join(str(ROOT / room) for room in ("protocol", "engine", "server", "client"))
START_PATIENCE_S = 240


@dataclass
class LiveServer:
    """A server that listens.

    Attributes:
        url: such as ``http://127.0.0.1:40123``.
        api_key: a key that opens it; ``other_key`` is another tenant's, ``admin_key`` has all scopes.
        process: for a server that is a process of its own.
        app: for a server in a thread; ``loop`` is its event loop.
        pid: of a server that is a process, whoever started it.
    """

    url: str
    api_key: str
    other_key: str
    process: subprocess.Popen[str] | None = None
    app: Any = None
    admin_key: str = "gw_test_key_of_an_administrator"
    pid: int = 0
    loop: Any = None

    @property
    def alive(self) -> bool:
        """Whether the server's process still runs."""
        if self.process is not None:
            return self.process.poll() is None
        return Path(f"/proc/{self.pid}").exists()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"}

    @property
    def stream_url(self) -> str:
        """What a session's stream URL begins with."""
        return self.url.replace("http", "ws", 1) + "/v1/sessions/"

    def http(self, key: str | None = None) -> httpx.Client:
        """A client with the key, or with another one."""
        headers = {"Authorization": f"Bearer {key or self.api_key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=240)


API_KEY = "gw_test_key_of_the_first_tenant"
OTHER_KEY = "gw_test_key_of_the_second_tenant"
ADMIN_KEY = LiveServer.admin_key


@contextmanager
def live_server(
    passes: PassVerifier | None = None, redirector: Redirector | None = None, **settings: Any
) -> Iterator[LiveServer]:
    """A server in a thread of this process; ``settings`` are those of :class:`Settings`. ``passes`` makes it a worker
    of a fleet, ``redirector`` a gateway."""
    defaults = {"host": "127.0.0.1", "port": 0, "log_level": "error"}
    settings = {**defaults, "api_keys": (API_KEY, OTHER_KEY), "admin_keys": (ADMIN_KEY,), **settings}
    chosen = Settings(**settings)
    # Only the level: this process's handlers belong to pytest.
    level = structlog.make_filtering_bound_logger(getattr(logging, chosen.log_level.upper()))
    structlog.configure(
        wrapper_class=level,
        processors=[structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)],
    )
    app = create_app(chosen, passes=passes, redirector=redirector)
    ready = threading.Event()
    urls: list[str] = []

    def started(url: str) -> None:
        urls.append(url)
        ready.set()

    server = DrainingServer(app, chosen, started)
    listening = listen(chosen)
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)

    def serve() -> None:
        with runner:
            app.state.loop = runner.get_loop()
            runner.run(server.serve([listening]))

    thread = threading.Thread(target=serve, name="live-server", daemon=True)
    thread.start()
    try:
        if not ready.wait(START_PATIENCE_S):
            raise RuntimeError("the server did not start")
        yield LiveServer(urls[0], API_KEY, OTHER_KEY, app=app, loop=runner.get_loop())
    finally:
        server.stop()
        server.stop()  # the second time means at once
        thread.join(240)
    assert not thread.is_alive(), "the server did not stop"


@contextmanager
def server_process(*arguments: str, sources: str = SOURCES, **settings: Any) -> Iterator[LiveServer]:
    """A server as a process of its own, started by its command. It is killed at the end if it still runs.

    ``sources`` is its ``PYTHONPATH``.

    ``GRADWIRE_TEST_SERVER`` names a server that runs already and keeps its own settings, as ``URL PID``: it is used
    instead, and left running. ``docker/soak.sh`` does so with a container.
    """
    if running := os.environ.get("GRADWIRE_TEST_SERVER"):
        url, pid = running.split()
        yield LiveServer(url, API_KEY, OTHER_KEY, pid=int(pid))
        return
    keys = {"api_keys": json.dumps([API_KEY, OTHER_KEY]), "admin_keys": ADMIN_KEY}
    settings = {**keys, "log_level": "warning", **settings}
    environment = {
        **os.environ,
        **{f"GRADWIRE_{name.upper()}": str(value) for name, value in settings.items()},
        "PYTHONPATH": sources,
    }
    command = [sys.executable, "-m", "gradwire_server", "--port", "0", "--announce", *arguments]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: exit code {process.wait()}")
        yield LiveServer(json.loads(line)["url"], API_KEY, OTHER_KEY, process=process, pid=process.pid)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(120)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
