"""Signal handlers may use tensors. They can interrupt the program anywhere, also while it sends a frame."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from typing import Any

import pytest

import gradwire as gw
from gradwire._core.context.call_sites import RecentLines
from gradwire._core.session.frame_builder import FrameBuilder
from gradwire._core.wire.connection import Connection
from gradwire._core.wire.frame_encoder import FrameEncoder
from gradwire._core.wire.link import Link
from gradwire._core.wire.send_window import SendWindow
from gradwire._core.wire.server_clock import ServerClock

PLACES = [
    (FrameBuilder, "_end_frame"), (FrameBuilder, "hand_over"), (FrameBuilder, "_cut"), (FrameBuilder, "_renew"),
    (FrameBuilder, "_try"), (FrameBuilder, "append"), (FrameBuilder, "_let_through"), (Link, "submit"),
    (Link, "wait"), (Link, "_write"), (Link, "_take_in"),
    (Link, "_answer"), (Link, "_attempt"), (Link, "_write_rest"), (Link, "make_room"),
    (SendWindow, "add"), (SendWindow, "answer"), (FrameEncoder, "pack"), (FrameEncoder, "message"), (RecentLines,
    "keep"), (ServerClock, "__init__"), (Connection, "__init__"), (Connection, "send"), (Connection, "_handshake"),
    (Connection, "_await_welcome"), (Connection, "_readable"), (Connection, "_take_in"),
]  # fmt: skip


def step(x: Any, w: Any) -> Any:
    h = (w * 2 + x).relu() @ w
    leaf = w.detach().requires_grad_()
    (gw.cat([leaf, h]) * 3).sum().backward()
    assert leaf.grad is not None
    return leaf.grad.sum() + h.sum()


def handled(made: list[Any], x: Any, w: Any, reads: bool) -> None:
    with gw.enable_grad():
        made.append(step(w, x).item() if reads else step(w, x))


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0].__name__}.{place[1]}")
def test_at_any_place(alone: Any, monkeypatch: Any, place: Any, late: bool, reads: bool) -> None:
    x, w = gw.tensor([[1.0, 2.0], [3.0, 4.0]]), gw.tensor([[5.0, 6.0], [7.0, 8.0]])
    right, beside = step(x, w).item(), step(w, x).item()
    owner, name = place
    original: Callable[..., Any] = getattr(owner, name)
    made: list[Any] = []
    calls = 0
    inside = False

    def meddle() -> None:
        nonlocal calls, inside
        if inside:
            return
        calls += 1
        if calls % 3 == 1 and len(made) < 8:
            inside = True
            try:
                handled(made, x, w, reads)
            finally:
                inside = False

    def patched(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not late:
            meddle()
        found = original(self, *args, **kwargs)
        if late:
            meddle()
        return found

    monkeypatch.setattr(owner, name, patched)
    for time in range(6):
        if time == 3:
            alone.link._way.connection.break_off()
        assert step(x, w).item() == right
    monkeypatch.setattr(owner, name, original)
    assert made
    assert [each if reads else each.item() for each in made] == [beside] * len(made)
    assert step(x, w).item() == right


@pytest.mark.parametrize("reads", [False, True])
def test_of_a_timer(alone: Any, reads: bool) -> None:
    x, w = gw.tensor([[1.0, 2.0], [3.0, 4.0]]), gw.tensor([[5.0, 6.0], [7.0, 8.0]])
    right, beside = step(x, w).item(), step(w, x).item()
    made: list[Any] = []
    draw = random.Random(0)

    def handle(*_: Any) -> None:
        handled(made, x, w, reads)
        if len(made) < 100:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0002, 0.004))

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        for _ in range(100_000):
            assert step(x, w).item() == right
            if len(made) >= 100:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [each if reads else each.item() for each in made] == [beside] * len(made)


def test_of_a_frame_that_is_sent_while_structures_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = FrameEncoder()
    for number in range(3):
        encoder._remember(bytes([number]))
    lose = encoder._lose

    def interrupted(key: bytes, why: str) -> None:
        lose(key, why)
        encoder._remember(b"of the handler")

    monkeypatch.setattr(encoder, "_lose", interrupted)
    encoder.forget("reconnected")
    assert list(encoder._known) == [b"of the handler"]
    assert list(encoder._lost) == [b"\0", b"\1", b"\2"]
