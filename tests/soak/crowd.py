"""64 clients train at once on one server: no error, no lost frame, flat memory, and probes answered throughout.

The clients are threads of a few processes, each with its own session, and train repeatedly until the time is over. A
probe in a separate process requests ``/livez`` and measures the server's memory. Every client's weights are compared
with those of a run that had the server to itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

import gradwire
from gradwire._core.session import current_session
from tests.live_server import API_KEY, ROOT, SOURCES, server_process

from . import Figures, enough, progress
from .probes import Prober

SECONDS = 300.0
HOSTS = ("inline", "process")
CLIENTS = 64
PROCESSES = 4
STEPS = 20
_CURRENT = threading.Lock()
LEAST_SECONDS = 120.0
"""Of training; the rest of the time is for the beginning and the end."""
MOST_GROWTH = 0.05


def one_run(url: str, steps: int = STEPS) -> str:
    """A session of its own, a training run in it, and its weights. New tensors belong to the session that is current
    in the process, so that it is made current for as long as it takes to record them."""
    rng = np.random.default_rng(0)
    with current_session.open_session(url, API_KEY, seed=7) as session:

        def upload(*shape: int) -> Any:
            with _CURRENT:
                current_session._current = session
                return gradwire.from_numpy(rng.standard_normal(shape).astype(np.float32))

        weights = [upload(6, 16).requires_grad_(), upload(16, 1).requires_grad_()]
        adam = gradwire.optim.Adam(weights, lr=0.05)
        for step in range(steps):
            x, y = upload(32, 6), upload(32, 1)
            adam.zero_grad()
            loss = (gradwire.nn.functional.dropout((x @ weights[0]).relu(), 0.2) @ weights[1] - y).square().mean()
            loss.backward()
            adam.step()
            if step % 5 == 0:
                assert np.isfinite(loss.item())
        end = b"".join(w.detach().numpy().tobytes() for w in weights)
    return end.hex()


def run_client(url: str, end: float, number: int, told: list[dict[str, Any]]) -> None:
    """One client: a session, and training runs in it until the time is over. They begin alike and must end alike."""
    runs = 0
    ends: set[str] = set()
    try:
        while time.time() < end:
            ends.add(one_run(url))
            runs += 1
        error = ""
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    told.append({"client": number, "runs": runs, "ends": sorted(ends), "error": error})


def clients(url: str, count: int, end: float) -> None:
    """A process of clients, one in each thread; prints what became of them as JSON."""
    told: list[dict[str, Any]] = []
    threads = [threading.Thread(target=run_client, args=(url, end, i, told)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(told))


def start(*arguments: Any) -> subprocess.Popen[str]:
    """A process of clients."""
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, str(ROOT)]), "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.soak.crowd", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)


def run(most_seconds: float = SECONDS, count: int = CLIENTS, processes: int = PROCESSES) -> Figures:
    """Against sessions in the server's own process, then against sessions in workers."""
    figures: Figures = {}
    for host in HOSTS:
        found = train(host, most_seconds / len(HOSTS), count, processes)
        figures |= {f"{host}: {what}": value for what, value in found.items()}
    return figures


def train(host: str, most_seconds: float, count: int, processes: int) -> Figures:
    """Let them train for the time that is given, less what it takes to begin and to end."""
    with (
        server_process(max_sessions=4 * count, max_connections=4 * count + 100, session_host=host) as server,
        contextlib.ExitStack() as stack,
    ):
        alone = one_run(server.url)
        began = time.time()
        end = began + max(most_seconds - 30, 5)
        prober = Prober(server.url, server.pid, end)
        crowd = [start(server.url, count // processes, end) for _ in range(processes)]
        for each in (prober, *crowd):
            stack.callback(each.kill)
        told: list[dict[str, Any]] = []
        for each in crowd:
            out, _ = each.communicate(timeout=most_seconds + 120)
            told.extend(json.loads(out))
            progress(f"{len(told)} clients are done")
        probed = prober.told()
        with server.http() as http:
            left = len(http.get("/v1/sessions").json().get("sessions", []))
    assert len(told) == count
    assert not any(each["error"] for each in told), [each for each in told if each["error"]][:3]
    assert all(each["ends"] in ([], [alone]) for each in told), "a crowd's weights are not those of a client alone"
    span = end - began
    second, last = (
        statistics.median([m for t, m in probed.memory if low <= (t - began) / span < high])
        for low, high in ((0.25, 0.5), (0.75, 1.0))
    )
    probed.check()
    assert last < second * (1 + MOST_GROWTH), f"memory grew from {second:,} to {last:,} bytes"
    enough(sum(each["runs"] > 0 for each in told), count, "clients came to the end of a run")
    enough(round(span), LEAST_SECONDS, "seconds of training")
    return {
        "clients": count, "training runs": sum(each["runs"] for each in told),
        "steps": sum(each["runs"] for each in told) * STEPS, "sessions left": left,
        **probed.figures,
        "memory, second quarter (MB)": round(second / (1 << 20)),
        "memory, last quarter (MB)": round(last / (1 << 20)), "growth": f"{last / second - 1:+.2%}",
    }  # fmt: skip


if __name__ == "__main__":
    clients(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
