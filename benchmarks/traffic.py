"""What a training step puts on the wire once it is known, beyond the batch itself: its hash, its ids, its numbers.

Counted where the client writes to its socket, WebSocket's own heads included. Each step uploads a batch of images that
was never sent before; their bytes and the labels' are taken off. How many ops a step has must not show.
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
    from gradwire.session import Session

LIMIT: Final = 300.0
WARM: Final = 5
WINDOW: Final = 10
BATCH: Final = 128


def run(plan: Plan) -> Iterator[Row]:
    """The perceptron with fresh batches; then steps over data that the server has."""
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
    """A step of the perceptron on a batch that the program has just made."""
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
    """Bytes a step, up and down, each over a window of ten: what is sent with the next step is counted with it."""
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
