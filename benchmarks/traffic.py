"""The bytes of a known training step on the wire, without its batch: its hash, ids and numbers.

They are counted where the client writes to its socket, WebSocket headers included. Each step uploads a new batch of
images; the bytes of images and labels are subtracted. The figure must not depend on the number of ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import gradwire
from gradwire import nn

from . import chain, gpt, lstm
from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures

if TYPE_CHECKING:
    from gradwire._core.session.session import Session

LIMIT: Final = 300.0
WARM: Final = 5
WINDOW: Final = 10
BATCH: Final = 128


def run(plan: Plan) -> Iterator[Row]:
    """The perceptron with new batches, then steps over data on the server."""
    steps = plan.of(10, 2)
    with Server() as server:
        for read in (False, True):
            with session(server) as opened:
                up, down = _counted(opened, _uploading(read), steps)
            sizes = f"{_batch_bytes():,} bytes of the batch taken off; {down.median:.0f} bytes came back"
            case = f"MLP step beyond its batch, loss {'read every step' if read else 'not read'}"
            yield Row("traffic", case, "bytes", up.less(_batch_bytes()), None, Target(LIMIT), sizes)
        for name, build in (("GPT block", gpt.build), ("LSTM", lstm.build)):
            with session(server) as opened:
                training = build(gradwire)
                up, down = _counted(opened, lambda n, t=training: t.step(n % 10), steps)  # type: ignore[misc]
            note = f"{down.median:.0f} bytes came back"
            yield Row("traffic", f"{name} step, data on the server, loss not read", "bytes", up, None, None, note)
        with session(server) as opened:
            step = chain.build(gradwire)
            up, down = _counted(opened, lambda _: step(), steps)
        note = f"{down.median:,.0f} bytes came back, {4 * chain.SIZE**2:,} of them the gradient"
        yield Row("traffic", "chain step, a gradient read", "bytes", up, None, None, note)


def _uploading(read: bool) -> Callable[[int], None]:
    """A step of the perceptron on a new batch."""
    random = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = gradwire.optim.SGD(model.parameters(), lr=0.01)

    def step(_: int) -> None:
        images = gradwire.tensor(random.standard_normal((BATCH, 784), dtype=np.float32))
        labels = gradwire.tensor(random.integers(0, 10, BATCH))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if read:
            loss.item()

    return step


def _batch_bytes() -> int:
    return BATCH * 784 * 4 + BATCH * 8


def _counted(opened: Session, step: Callable[[int], Any], steps: int) -> tuple[Figures, Figures]:
    """Bytes per step, up and down, over windows of ten; bytes that are sent with the next step count there."""
    for number in range(WARM):
        step(number)
    up, down = [], []
    for _ in range(steps):
        before = opened.stats()
        for number in range(WINDOW):
            step(number)
        after = opened.stats()
        up.append((after["bytes_sent"] - before["bytes_sent"]) / WINDOW)
        down.append((after["bytes_received"] - before["bytes_received"]) / WINDOW)
    opened.synchronize()
    return Figures(tuple(up)), Figures(tuple(down))
