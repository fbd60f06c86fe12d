"""What each of the schedulers gives by itself: the same work beside a server (or client) that lacks one of them.

A ratio below 1 is what the scheduler gains. Sessions run inline, since a server is altered in its own process.
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import gradwire

from . import mlp
from .report import Plan, Row
from .servers import Server, inside
from .sessions import Program
from .timing import Figures, interleave, seconds

CROWD: Final = 6
"""Sessions that train while the server is asked whether it is alive."""
CROWD_S: Final = 1.0
SPIN: Final = "GRADWIRE_SPIN_S"
SIDES: Final = ("with", "without")
PLAIN: Final = ("gradwire_server",)


def run(plan: Plan) -> Iterator[Row]:
    """Two rows for each scheduler of a single session, then those of a crowd."""
    yield from _alone("neither polls", plan, client_spin="0", spin_s=0)
    if not plan.quick:
        yield from _alone("client polls", plan, client_spin="0")
        yield from _alone("server polls", plan, spin_s=0)
        yield from _alone("duration predictor", plan, module=("benchmarks.altered_server", "duration predictor"))
    yield from _alone("direct reception", plan, module=("benchmarks.altered_server", "direct reception"))
    yield from _crowd(plan)


def _alone(
    name: str, plan: Plan, module: tuple[str, ...] = PLAIN, client_spin: str | None = None, **settings: object
) -> Iterator[Row]:
    """One session: a small read in each step, and an MLP whose loss is read in each step."""
    with ExitStack() as stack:
        servers = {
            "with": stack.enter_context(Server(session_host="inline")),
            "without": stack.enter_context(Server(session_host="inline", module=module, **settings)),
        }
        reads: dict[str, Callable[[], float]] = {}
        steps: dict[str, Callable[[], float]] = {}
        for side, server in servers.items():
            with _environment({SPIN: client_spin} if side == "without" and client_spin is not None else {}):
                opened = gradwire.connect(server.url, server.key)
            stack.callback(opened.close)
            with inside(opened):
                reads[side] = _within(opened, _small_read(plan.of(200, 2)))
                steps[side] = _within(opened, _training(plan.of(50, 2)))
        for case, sides in (("a read of 3 small ops", reads), ("MLP step, loss read", steps)):
            found = interleave(sides, plan.rounds)
            yield Row("schedulers", f"{name}: {case}", "us", found["with"], found["without"], note="beside without")


def _crowd(plan: Plan) -> Iterator[Row]:
    """How long the server takes to answer ``/livez`` while several sessions train."""
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        modules = {"with": PLAIN, "without": ("benchmarks.altered_server", "compute semaphore")}
        servers = {
            side: stack.enter_context(Server(2, session_host="inline", module=module))
            for side, module in modules.items()
        }
        programs = {
            side: [stack.enter_context(Program(server)) for _ in range(plan.of(CROWD, 2))]
            for side, server in servers.items()
        }
        for number in range(plan.rounds + 1):
            for side in SIDES if number % 2 else SIDES[::-1]:
                length = CROWD_S if not plan.quick else 0.1
                for program in programs[side]:
                    program.begin(length)
                worst = _slowest_answer(servers[side].url, length)
                rate = sum(program.rate() for program in programs[side])
                if number:  # the first round warms up
                    taken[side].append(worst * 1e3)
                    rates[side].append(rate)
    case = f"compute semaphore: {CROWD} sessions train"
    for what, unit, found in (("slowest /livez", "ms", taken), ("all steps", "steps/s", rates)):
        figures = {side: Figures(tuple(values)) for side, values in found.items()}
        yield Row("schedulers", f"{case}, {what}", unit, figures["with"], figures["without"], note="beside without")


def _slowest_answer(url: str, length: float) -> float:
    split = urlsplit(url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=60)
    until, worst = time.monotonic() + 0.9 * length, 0.0
    while time.monotonic() < until:
        worst = max(worst, seconds(lambda: _ask(connection)))
        time.sleep(0.01)
    connection.close()
    return worst


def _ask(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", "/livez")
    connection.getresponse().read()


def _small_read(times: int) -> Callable[[], float]:
    x = gradwire.ones(8)

    def several() -> None:
        for _ in range(times):
            (x * 1.5 + 1.0).sum().item()

    return lambda: seconds(several) / times * 1e6


def _training(times: int) -> Callable[[], float]:
    training = mlp.build(gradwire)

    def several() -> None:
        for number in range(times):
            training.step(number).item()

    return lambda: seconds(several) / times * 1e6


def _within(opened: Any, measure: Callable[[], float]) -> Callable[[], float]:
    def measured() -> float:
        with inside(opened):
            return measure()

    measured()
    return measured


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
