"""Ordinary loops repeat their frames: from the second step on, every structure travels as its hash (from the third, if
the first creates the optimizer's state or a read happens for the first time).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradwire as gw

Loop = Callable[[], Iterator[None]]
pytestmark = pytest.mark.usefixtures("uncut")


def model() -> Any:
    return gw.nn.Sequential(gw.nn.Linear(6, 8), gw.nn.ReLU(), gw.nn.Linear(8, 3))


def batch(size: int = 4) -> tuple[Any, Any]:
    drawn = np.random.default_rng(size)
    return gw.tensor(drawn.standard_normal((size, 6)).astype("f4")), gw.tensor(drawn.integers(0, 3, size))


def loss_of(net: Any, x: Any, y: Any) -> Any:
    return gw.nn.functional.cross_entropy(net(x), y)


def trained(**given: Any) -> tuple[Any, Any]:
    """A model and its optimizer."""
    net = model()
    return net, gw.optim.SGD(net.parameters(), lr=0.1, **given)


# The loops are generators, not functions of a step: what a step has named lives on into the next one, as in programs.


def plain_sgd() -> Iterator[None]:
    net, optimizer = trained()
    while True:
        x, y = batch()
        optimizer.zero_grad()
        loss_of(net, x, y).backward()
        optimizer.step()
        yield


def loss_read_every_step() -> Iterator[None]:
    net, optimizer = trained()
    while True:
        optimizer.zero_grad()
        loss = loss_of(net, *batch())
        loss.backward()
        optimizer.step()
        loss.item()
        yield


def loss_read_between_backward_and_step() -> Iterator[None]:
    net, optimizer = trained()
    while True:
        optimizer.zero_grad()
        loss = loss_of(net, *batch())
        loss.backward()
        loss.item()
        optimizer.step()
        yield


def rate_scheduled() -> Iterator[None]:
    net, optimizer = trained()
    schedule = gw.optim.lr_scheduler.StepLR(optimizer, 2, 0.9)
    while True:
        optimizer.zero_grad()
        loss_of(net, *batch()).backward()
        optimizer.step()
        schedule.step()
        yield


def by_hand() -> Iterator[None]:
    net = model()
    while True:
        loss_of(net, *batch()).backward()
        with gw.no_grad():
            for param in net.parameters():
                param -= 0.1 * param.grad
                param.grad = None
        yield


def adam_cleared_after_the_step() -> Iterator[None]:
    net = model()
    optimizer = gw.optim.AdamW(net.parameters(), lr=0.01)
    while True:
        loss = loss_of(net, *batch())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        yield


def momentum_and_clipping() -> Iterator[None]:
    net, optimizer = trained(momentum=0.9)
    while True:
        optimizer.zero_grad()
        loss_of(net, *batch()).backward()
        gw.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        yield


def gradients_accumulated() -> Iterator[None]:
    net, optimizer = trained()
    while True:
        optimizer.zero_grad()
        for _ in range(3):
            (loss_of(net, *batch()) / 3).backward()
        optimizer.step()
        yield


def two_optimizers() -> Iterator[None]:
    maker = gw.nn.Linear(2, 6)
    judge = gw.nn.Linear(6, 1)
    of_maker, of_judge = gw.optim.Adam(maker.parameters()), gw.optim.Adam(judge.parameters())
    noise = gw.ones(4, 2)
    while True:
        of_judge.zero_grad()
        (judge(maker(noise).detach()).mean() - judge(batch()[0]).mean()).backward()
        of_judge.step()
        of_maker.zero_grad()
        (-judge(maker(noise)).mean()).backward()
        of_maker.step()
        yield


def scaled() -> Iterator[None]:
    net, optimizer = trained()
    scaler = gw.amp.GradScaler("cpu", init_scale=8.0)
    while True:
        optimizer.zero_grad()
        with gw.autocast("cpu"):
            loss = loss_of(net, *batch())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield


def decided_by_a_value() -> Iterator[None]:
    net, optimizer = trained()
    while True:
        optimizer.zero_grad()
        loss = loss_of(net, *batch())
        if loss < 100:
            loss = loss * 2
        loss.backward()
        optimizer.step()
        yield


SETTLED: dict[Loop, int] = {
    plain_sgd: 2, loss_read_every_step: 2, loss_read_between_backward_and_step: 2, rate_scheduled: 2, by_hand: 3,
    adam_cleared_after_the_step: 3, momentum_and_clipping: 3, gradients_accumulated: 3, two_optimizers: 3, scaled: 3,
    decided_by_a_value: 3,
}  # fmt: skip
"""After how many steps nothing new is sent: a step's frame is sent while the next one runs."""


def new_per_step(session: Any, loop: Loop, steps: int) -> list[int]:
    """How many structures that were new were sent while each step ran: those of the step before, as a rule."""
    session.synchronize()
    found = []
    turns = loop()
    for _ in range(steps):
        before = session.stats()["structure_new"]
        next(turns)
        found.append(session.stats()["structure_new"] - before)
    return found


def test_a_smaller_last_batch_repeats_from_the_second_epoch_on(alone) -> None:
    net, optimizer = trained()

    def epochs() -> Iterator[None]:
        while True:
            for size in (4, 4, 4, 3):
                x, y = batch(size)
                optimizer.zero_grad()
                loss_of(net, x, y).backward()
                optimizer.step()
                yield

    found = new_per_step(alone, epochs, 16)
    assert sum(found[:6]) == 2, found
    assert sum(found[6:]) == 0, found


def test_a_loss_read_every_third_step_repeats_with_and_without_the_read(alone) -> None:
    net, optimizer = trained()

    def loop() -> Iterator[None]:
        for step in range(100):
            optimizer.zero_grad()
            loss = loss_of(net, *batch())
            loss.backward()
            optimizer.step()
            if step % 3 == 2:
                loss.item()
            yield

    found = new_per_step(alone, loop, 12)
    assert sum(found[:4]) == 2, found
    assert sum(found[4:]) == 0, found


def test_an_ordinary_step_is_one_frame_and_with_a_read_one_round_trip(alone) -> None:
    for loop, trips in ((plain_sgd, 0), (loss_read_every_step, 1)):
        turns = loop()
        for _ in range(3):
            next(turns)
        before = alone.stats()
        for _ in range(5):
            next(turns)
        after = alone.stats()
        assert after["frames"] - before["frames"] == 5
        assert after["round_trips"] - before["round_trips"] == 5 * trips
        assert after["structure_hits"] - before["structure_hits"] == 5


def frames_of(session: Any, what: Callable[[], Any]) -> int:
    session.synchronize()
    before = session.frames
    what()
    session.flush()
    return int(session.frames - before)


def test_what_works_on_gradients_joins_the_frame_of_the_backward(alone) -> None:
    net, optimizer = trained()
    x, y = batch()

    def look_at_a_gradient() -> None:
        loss_of(net, x, y).backward()
        assert net[0].weight.grad.tolist()

    def clip_and_step() -> None:
        loss_of(net, x, y).backward()
        assert gw.nn.utils.clip_grad_norm_(net.parameters(), 1.0).item() > 0
        optimizer.step()

    def clip_then_step() -> None:
        loss_of(net, x, y).backward()
        gw.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    assert frames_of(alone, look_at_a_gradient) == 1
    assert frames_of(alone, clip_then_step) == 1
    assert frames_of(alone, clip_and_step) == 2  # it is read in between


def test_another_record_ends_the_frame_of_a_backward_or_step(alone) -> None:
    net, optimizer = trained()
    x, y = batch()

    def compute_on() -> None:
        loss_of(net, x, y).backward()
        x * 2
        optimizer.step()
        x * 3

    assert frames_of(alone, compute_on) == 3


def test_a_product_with_a_hessian_is_one_frame_read_or_not(alone) -> None:
    net = model()
    params = list(net.parameters())
    x, y = batch()

    def curvature() -> Any:
        first = gw.autograd.grad(loss_of(net, x, y), params, create_graph=True)
        second = gw.autograd.grad(sum((g * p).sum() for g, p in zip(first, params, strict=True)), params)
        return sum((h * p).sum() for h, p in zip(second, params, strict=True))

    assert frames_of(alone, curvature) == 1
    assert frames_of(alone, lambda: curvature().item()) == 1
    assert frames_of(alone, lambda: [curvature() for _ in range(3)]) == 3


def test_steps_with_gradients_that_were_asked_for_are_a_frame_each(alone) -> None:
    net = model()
    params = list(net.parameters())
    x, y = batch()

    def steps() -> None:
        for _ in range(4):
            found = gw.autograd.grad(loss_of(net, x, y), params)
            with gw.no_grad():
                for param, gradient in zip(params, found, strict=True):
                    param -= 0.1 * gradient

    assert frames_of(alone, steps) == 4


def test_a_frame_that_is_due_is_sent_when_the_program_is_quiet() -> None:
    shared = gw.current_session()
    try:
        with gw.connect() as session:
            loss_of(model(), *batch()).backward()
            before = session.frames
            deadline = time.monotonic() + 120
            while session.frames == before and time.monotonic() < deadline:
                time.sleep(0.01)
            assert session.frames > before
    finally:
        gw._core.session.current_session._current = shared


def test_a_steady_step_takes_300_bytes_beside_its_batch(alone) -> None:
    net = gw.nn.Sequential(gw.nn.Linear(784, 256), gw.nn.ReLU(), gw.nn.Linear(256, 10))
    optimizer = gw.optim.SGD(net.parameters(), lr=0.1)
    pixels = np.zeros((128, 784), "f4")
    labels = np.zeros(128, "i8")

    def step() -> None:
        x, y = gw.tensor(pixels), gw.tensor(labels)
        optimizer.zero_grad()
        loss = loss_of(net, x, y)
        loss.backward()
        optimizer.step()
        loss.item()

    for _ in range(4):
        step()
    before = alone.stats()
    for _ in range(10):
        step()
    sent = (alone.stats()["bytes_sent"] - before["bytes_sent"]) / 10
    assert sent - pixels.nbytes - labels.nbytes <= 300


def test_why_a_structure_travels_whole_is_told(alone) -> None:
    turns = loss_read_every_step()
    for _ in range(3):
        next(turns)
    counts = alone.stats()
    assert counts["structure_new"] >= 1
    assert counts["structure_hits"] >= 1
    assert counts["structure_reconnected"] == counts["structure_forgotten"] == 0
    alone.link._way.connection.drop()
    next(turns)
    assert alone.stats()["reconnects"] == 1
    assert alone.stats()["structure_reconnected"] == 1
    assert alone.stats()["structure_new"] == counts["structure_new"]


@pytest.mark.parametrize(("loop", "settled"), SETTLED.items(), ids=[loop.__name__ for loop in SETTLED])
def test_a_loop_repeats_its_frames_from_the_second_or_third_step_on(alone, loop, settled) -> None:
    found = new_per_step(alone, loop, settled + 5)
    assert sum(found[settled:]) == 0, found
