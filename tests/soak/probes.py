"""Response times of ``/livez`` on a server under test and on an idle server beside it.

Both are requested at the same moment. A shared machine may suspend every process for most of a second, which delays
both answers; the difference is the server's own delay. This runs as a separate process, which also measures the
server's memory.
"""

from __future__ import annotations

import contextlib
import glob
import http.client
import json
import multiprocessing
import os
import select
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tests.live_server import ROOT, SOURCES

EVERY_S: Final = 0.2
MOST_S: Final = 30.0
MOST_P99_MS: Final = 100.0
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def resident(pid: int) -> int:
    """Bytes of a server and its workers in memory."""
    pids = [pid]
    pages = 0
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path) as file:  # a thread that has ended meanwhile
            pids += map(int, file.read().split())
    for each in pids:
        with contextlib.suppress(OSError), open(f"/proc/{each}/statm") as file:
            pages += int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def resident_alone(pid: int) -> int:
    """Bytes of the server's own process in memory."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def p99(times: list[float]) -> float:
    """The time within which 99 of 100 are answered."""
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


@dataclass
class Probed:
    """What probes found; times are in ms.

    Attributes:
        times, beside: until the server answered, and until the idle one did, by probe.
        memory: bytes of the server and its workers, with the time at which they were seen.
        stolen: the share of the processors' time in which the machine that this one runs on let others run.
    """

    times: list[float]
    beside: list[float]
    memory: list[tuple[float, int]]
    stolen: float

    @property
    def added(self) -> list[float]:
        """By how much the server answered later than the idle one."""
        return [time - beside for time, beside in zip(self.times, self.beside, strict=True)]

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "probes": len(self.times), "median of /livez (ms)": round(statistics.median(self.times), 2),
            "p99 of /livez (ms)": round(p99(self.times), 1), "worst (ms)": round(max(self.times), 1),
            "p99 of an idle server beside it (ms)": round(p99(self.beside), 1),
            "p99 of the difference (ms)": round(p99(self.added), 1),
            "load of the machine": " ".join(f"{each:.1f}" for each in os.getloadavg()),
            "its processors' time that others had": f"{self.stolen:.1%}",
        }  # fmt: skip

    def check(self, what: Any = "") -> None:
        """Check that the server answers soon.

        Raises:
            AssertionError: when it does not.
        """
        found = p99(self.times)
        assert found < MOST_P99_MS, (
            f"p99 of /livez was {found:.1f} ms, and {p99(self.added):.1f} ms above that of an idle server beside it: "
            f"{what or self.figures}"
        )


class Prober:
    """Probes a server until a time, in a process of its own."""

    def __init__(self, url: str, pid: int, end: float) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, str(ROOT)])}
        command = [sys.executable, "-m", "tests.soak.probes", url, str(pid), str(end)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)

    def kill(self) -> None:
        """End it before its time."""
        self._process.kill()

    def told(self) -> Probed:
        """What it found. Waits for its end."""
        return Probed(**json.loads(self._process.communicate(timeout=60)[0]))


def _answer(listening: socket.socket) -> None:
    """The idle server: answers whatever comes over one connection."""
    connection, _ = listening.accept()
    with connection:
        while connection.recv(4096):
            connection.sendall(ANSWER)


def _processors() -> tuple[int, int]:
    """Ticks that others on the machine below had, and all ticks."""
    try:
        with open("/proc/stat") as file:
            ticks = [int(each) for each in file.readline().split()[1:9]]
    except OSError:
        return 0, 1
    return ticks[7], sum(ticks)


def _ask(connections: list[http.client.HTTPConnection]) -> list[float]:
    started = time.perf_counter()
    for each in connections:
        each.request("GET", "/livez")
    waiting = {each.sock: i for i, each in enumerate(connections)}
    took = [0.0] * len(connections)
    while waiting:
        ready = select.select(list(waiting), [], [], MOST_S)[0]
        now = time.perf_counter()
        assert ready, f"no answer in {MOST_S:g} s"
        for sock in ready:
            took[waiting.pop(sock)] = (now - started) * 1e3
    for each in connections:
        response = each.getresponse()
        response.read()
        assert response.status == 200
    return took


def probe(url: str, pid: int, end: float) -> Probed:
    """Ask until the time is over."""
    found = Probed([], [], [], 0.0)
    address = urlsplit(url)
    assert address.hostname is not None
    with socket.create_server(("127.0.0.1", 0)) as listening:
        idle = multiprocessing.get_context("fork").Process(target=_answer, args=(listening,), daemon=True)
        idle.start()
        places = [(address.hostname, address.port), listening.getsockname()[:2]]
        connections = [http.client.HTTPConnection(host, port, timeout=MOST_S) for host, port in places]
        stolen, ticks = _processors()
        while time.time() < end:
            answered, beside = _ask(connections)
            found.times.append(answered)
            found.beside.append(beside)
            found.memory.append((time.time(), resident(pid)))
            time.sleep(EVERY_S)
        now_stolen, now_ticks = _processors()
        found.stolen = (now_stolen - stolen) / max(now_ticks - ticks, 1)
        for each in connections:
            each.close()
        idle.join(5)
    return found


if __name__ == "__main__":
    print(json.dumps(vars(probe(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))))
