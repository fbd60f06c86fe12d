"""Ctrl-C during a wait, and ``session.cancel()``: the server stops, and the program continues with the state before."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.live_server import LiveServer, live_server

import gradwire as gw
from gradwire._core.session import current_session
from gradwire_protocol.errors import Cancelled

PROMPT_S = 8.0
INTERRUPTED_WITHIN_S = 30.0


@pytest.fixture(scope="module", params=["inline", "process"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("data")
    with live_server(session_host=request.param, data_dir=folder, max_op_work=0, cancel_patience_s=1) as found:
        yield found


@pytest.fixture
def session(server: LiveServer) -> Iterator[Any]:
    before = current_session._current
    found = gw.connect(server.url, server.api_key, seed=1)
    try:
        yield found
    finally:
        found.close()
        current_session._current = before


def interrupt_after(seconds: float) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def interrupt_once_it_waits(session: Any) -> None:
    """Interrupt the program when it has recorded nothing for a while, since it waits for room."""

    def look() -> None:
        seen = -1
        for _ in range(200):
            recorded = session.recorded
            if recorded == seen and session.link.unanswered > 2:
                break
            seen = recorded
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=look, daemon=True).start()


def long_chain(x: Any, times: int = 400) -> Any:
    for _ in range(times):
        x = x @ x
    return x


def test_an_interrupt_while_waiting_cancels_and_the_session_lives_on(session: Any) -> None:
    kept = gw.full((3,), 2.0)
    x = gw.full((900, 900), 1e-3)
    assert kept.sum().item() == 6
    y = long_chain(x)
    interrupt_after(0.5)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        y.sum().item()
    assert time.monotonic() - began < PROMPT_S
    began = time.monotonic()
    assert kept.sum().item() == 6  # neither waits for what was cancelled, nor hears of it
    assert time.monotonic() - began < PROMPT_S
    with pytest.raises(Cancelled, match="cancelled"):
        y.sum().item()
    assert (kept + 1).tolist() == [3, 3, 3]
    assert x[0, 0].item() == pytest.approx(1e-3)


def test_another_thread_cancels_what_the_program_waits_for(session: Any) -> None:
    x = gw.full((900, 900), 1e-3)
    x.sum().item()
    threading.Timer(0.5, session.cancel).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        long_chain(x).sum().item()
    assert time.monotonic() - began < PROMPT_S
    assert gw.ones(2).sum().item() == 2


def test_nothing_to_cancel_is_no_error(session: Any) -> None:
    session.cancel()
    assert gw.ones(2).sum().item() == 2
    session.cancel()
    assert gw.ones(3).sum().item() == 3


def test_an_interrupted_training_goes_on_from_whole_steps(session: Any) -> None:
    model = gw.nn.Sequential(gw.nn.Linear(64, 256), gw.nn.BatchNorm1d(256), gw.nn.ReLU(), gw.nn.Linear(256, 1))
    optimizer = gw.optim.Adam(model.parameters(), lr=1e-3)
    x = gw.randn(512, 64)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step().item()
    choose = random.Random(5)
    for _ in range(6):
        interrupt_after(choose.uniform(0.02, 0.3))
        again = time.monotonic() + INTERRUPTED_WITHIN_S
        with pytest.raises(KeyboardInterrupt):
            while True:
                step()
                if choose.random() < 0.2:
                    session.synchronize()
                if time.monotonic() > again:  # Python drops an interrupt that arrives in a destructor
                    again += INTERRUPTED_WITHIN_S
                    interrupt_after(0.01)
        loss = step()
        assert 0 <= loss.item() < 10
        assert all(bool(gw.isfinite(p).all()) for p in model.parameters())


def test_a_program_that_waits_for_room_is_interrupted_too(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording pauses when too much is on its way. That is waiting, too."""
    monkeypatch.setattr("gradwire._core.wire.send_window.IN_FLIGHT_FRAMES", 3)
    total = gw.zeros(400, 400)
    x = gw.full((400, 400), 1e-3)
    assert total.sum().item() == 0
    interrupt_once_it_waits(session)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1_000_000):
            total += x @ x
    began = time.monotonic()
    assert gw.ones(2).sum().item() == 2
    assert time.monotonic() - began < PROMPT_S
    before = total.tolist()
    assert total.tolist() == before


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_a_prefix_or_poisoned_wherever_it_is_cancelled(session: Any, seed: int) -> None:
    """A counter and what is computed of it in one frame: they never disagree."""
    choose = random.Random(seed)
    heavy = gw.full((500, 500), 1e-4)
    counter, double = gw.zeros(3), gw.zeros(3)
    history = gw.zeros(1)
    session.synchronize()
    for _ in range(8):
        interrupt_after(choose.uniform(0.0, 0.4))
        try:
            for _ in range(choose.randrange(1, 4)):
                counter += 1
                for _ in range(choose.randrange(20)):
                    heavy @ heavy
                double += 2
                session.synchronize()
            history = counter + double
            history.tolist()
            time.sleep(1)
        except KeyboardInterrupt:
            pass
        try:
            one, two = counter.tolist(), double.tolist()
            assert two == [2 * v for v in one]
        except Cancelled:
            counter, double = gw.zeros(3), gw.zeros(3)


def test_training_after_an_interrupt_is_as_if_the_cancelled_steps_had_not_been(session: Any) -> None:
    def run(interrupted: bool) -> list[float]:
        gw.manual_seed(7)
        weight = gw.randn(600, 600, requires_grad=True)
        optimizer = gw.optim.SGD([weight], lr=1e-3)
        heavy = gw.full((600, 600), 1e-4)

        def step(times: int) -> Any:
            optimizer.zero_grad()
            hidden = weight
            for _ in range(times):
                hidden = hidden @ heavy
            loss = (weight * weight).mean() + hidden.sum() * 0
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(1).item() for _ in range(2)]
        if interrupted:
            interrupt_after(0.4)
            with pytest.raises(KeyboardInterrupt):
                step(400).item()
        for _ in range(3):
            step(1)
        return [*losses, step(1).item(), weight.sum().item()]

    assert run(True) == run(False)
