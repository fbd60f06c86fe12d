"""How the client waits for answers: awake where they come at once, asleep where not, and not after each frame."""

from __future__ import annotations

import math
import select
from typing import Any

import pytest

import gradwire as gw
from gradwire import connection, link


def connected(session: Any) -> connection.Connection:
    found = session.link._connection
    assert found is not None
    return found


class Sleeps:
    """Counts how often a thread falls asleep for a socket."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        real = select.select

        def watched(readers: Any, writers: Any, others: Any, timeout: float | None = None) -> Any:
            self.count += timeout is None or timeout > 0
            return real(readers, writers, others, timeout)

        monkeypatch.setattr(connection.select, "select", watched)


def test_answers_that_come_at_once_are_waited_for_awake(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = gw.ones(3)
    assert x.sum().item() == 3.0
    monkeypatch.setattr(connection, "SPIN_S", 60.0)
    monkeypatch.setattr(connection, "_CORES", 2)
    sleeps = Sleeps(monkeypatch)
    assert (x + 1).sum().item() == 6.0
    assert sleeps.count == 0


@pytest.mark.parametrize(("cores", "usual"), [(1, 0.0), (2, 1.0), (2, math.inf)])
def test_else_the_thread_sleeps(session: Any, monkeypatch: pytest.MonkeyPatch, cores: int, usual: float) -> None:
    x = gw.ones(3)
    assert x.sum().item() == 3.0
    monkeypatch.setattr(connection, "_CORES", cores)
    connected(session)._usual_wait = usual
    sleeps = Sleeps(monkeypatch)
    assert (x + 1).sum().item() == 6.0
    assert sleeps.count > 0


def test_what_is_usual_follows_what_happens(session: Any) -> None:
    x = gw.ones(3)
    assert x.sum().item() == 3.0
    found = connected(session)
    found._usual_wait = 1e6
    for _ in range(3):
        before = found._usual_wait
        assert (x + 1).sum().item() == 6.0
        assert found._usual_wait < before


def test_frames_that_nobody_waits_for_do_not_look_for_replies_each_time(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    take_in = link.Link._take_in

    def watched(self: Any, timeout: float | None, awake: bool = False) -> None:
        looks.append(timeout)
        take_in(self, timeout, awake)

    x = gw.ones(3)
    session.synchronize()
    monkeypatch.setattr(link.Link, "_take_in", watched)
    for _ in range(20 * link.LOOK_EVERY):
        x = x + 1
        session.flush()
    assert looks.count(0) <= 20
    assert x.sum().item() == 3.0 * (1 + 20 * link.LOOK_EVERY)
    assert session.stats()["unanswered"] == 0


@pytest.mark.parametrize("elements", [1, 16_383, 16_384, 65_536, 1_000_000])
def test_values_of_any_size_arrive_whole(session: Any, elements: int) -> None:
    x = gw.arange(elements, dtype=gw.float32)
    for add in (0.0, 1.0):
        assert (x + add).numpy()[[0, -1]].tolist() == [add, elements - 1 + add]
