"""The cost of durability: the perceptron's step without a journal, with one, and with one on disk.

Also the cost of a restart: how long the first request waits until the session is recovered.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import gradwire

from . import mlp
from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures, interleave, seconds
from .training import READ_EVERY, Training

LEVELS: Final = ("none", "applied", "durable")
STEPS: Final = 30
"""A round is longer than elsewhere: the difference to be seen is a few hundredths."""

REPLAYED: Final = 500


def run(plan: Plan) -> Iterator[Row]:
    """The three levels side by side, then a recovery."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradwire-durability-")))
        sides = {level: _side(stack, scratch, level, plan) for level in LEVELS}
        found = interleave(sides, plan.rounds)
    for level in LEVELS:
        yield Row("durability", f"MLP step, {level}", "ms", found[level])
    for level, target in (("applied", Target(1.05)), ("durable", None)):
        pairs = zip(found[level].values, found["none"].values, strict=True)
        ratio = Figures(tuple(ours / none for ours, none in pairs))
        yield Row("durability", f"MLP step, {level} over none", "ratio", ratio, None, target)
    yield _recovery(plan)


def _side(stack: ExitStack, scratch: Path, level: str, plan: Plan) -> Callable[[], float]:
    kept: dict[str, Any] = {} if level == "none" else {"data_dir": scratch / level}
    server = stack.enter_context(Server(1, durability=level, **kept))
    stack.enter_context(session(server))
    training = mlp.build(gradwire)
    steps = plan.of(STEPS, READ_EVERY)
    train(training, 2 * READ_EVERY)

    def measure() -> float:
        training.step(0).item()
        return seconds(lambda: train(training, steps)) / steps * 1e3

    return measure


def train(training: Training, steps: int) -> None:
    """Train for some steps, reading the loss now and then."""
    loss: Any = None
    for number in range(steps):
        loss = training.step(number)
        if number % READ_EVERY == READ_EVERY - 1:
            loss.item()


def _recovery(plan: Plan) -> Row:
    """Kill a server after this many steps and restart it; the client continues by itself and reads the weights."""
    steps = plan.of(REPLAYED, READ_EVERY)
    taken = []
    for _ in range(plan.of(3, 1)):
        with tempfile.TemporaryDirectory(prefix="gradwire-durability-") as scratch, ExitStack() as servers:
            server = servers.enter_context(Server(1, data_dir=scratch))
            with session(server):
                training = mlp.build(gradwire)
                train(training, steps)
                weights, reading = _read(training)
                server.kill()
                port = int(server.url.rpartition(":")[2])
                servers.enter_context(Server(1, port, data_dir=scratch, api_keys=server.key))
                again, recovering = _read(training)
            assert again == weights
            taken.append((recovering - reading) * 1e3)
    case = f"first read after kill -9, {steps} steps replayed"
    note = "client's reconnection included"
    return Row("durability", case, "ms", Figures(tuple(taken)), None, None, note, difference=True)


def _read(training: Training) -> tuple[list[bytes], float]:
    """The weights, and the seconds of the read."""
    began = time.perf_counter()
    weights = [parameter.detach().numpy().tobytes() for parameter in training.model.parameters()]
    return weights, time.perf_counter() - began
