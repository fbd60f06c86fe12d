"""Upload and download of a large tensor over loopback, and the server's memory for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

import gradwire

from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures, seconds

MB: Final = 1_000_000


def run(plan: Plan) -> Iterator[Row]:
    """64 MB each way. Memory is relative to a server with an empty session."""
    data = np.random.default_rng(0).standard_normal(plan.of(16_000_000, 100_000), dtype=np.float32)
    up: list[float] = []
    down: list[float] = []
    storing: list[float] = []
    fetching: list[float] = []
    with Server() as server, session(server) as opened:
        warm = gradwire.tensor(data[:10_000])
        warm.numpy()
        del warm
        opened.synchronize()
        empty = server.rss()
        for _ in range(plan.rounds):
            server.forget_peak()

            def upload() -> gradwire.Tensor:
                made = gradwire.tensor(data)
                opened.synchronize()
                return made

            took, tensor = _with_result(upload)
            up.append(data.nbytes / MB / took)
            storing.append((server.peak() - empty) / data.nbytes)
            server.forget_peak()
            took, back = _with_result(tensor.numpy)
            down.append(data.nbytes / MB / took)
            fetching.append((server.peak() - empty) / data.nbytes)
            np.testing.assert_array_equal(back, data)
            del tensor, back
            opened.synchronize()
    size = f"{data.nbytes / MB:g} MB"
    fast, lean = Target(400.0, at_least=True), Target(2.5)
    note = f"over the {empty / MB:.0f} MB of a server with an empty session"
    yield Row("transfer", f"upload of {size}", "MB/s", Figures(tuple(up)), None, fast)
    yield Row("transfer", f"download of {size}", "MB/s", Figures(tuple(down)), None, fast)
    yield Row("transfer", "server's peak memory, upload", "payloads", Figures(tuple(storing)), None, lean, note)
    yield Row("transfer", "server's peak memory, download", "payloads", Figures(tuple(fetching)), None, lean, note)


def _with_result(function):  # type: ignore[no-untyped-def]
    found = []
    took = seconds(lambda: found.append(function()))
    return took, found[0]
