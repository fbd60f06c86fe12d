"""How the client waits for answers: it polls if they come soon, else sleeps, and does not wait after each frame."""

from __future__ import annotations

import math
import socket
from typing import Any

import pytest

import gradwire as gw
from gradwire._core.session.current_session import open_session
from gradwire._core.wire import connection, link
from gradwire_protocol import awake


def connected(session: Any) -> connection.Connection:
    found = session.link._way.connection
    assert found is not None
    return found


class Sleeps:
    """Counts how often a thread falls asleep for a socket."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        real = connection.wait_readable

        def watched(sock: socket.socket, timeout: float | None) -> bool:
            self.count += timeout is None or timeout > 0
            return real(sock, timeout)

        monkeypatch.setattr(connection, "wait_readable", watched)


def test_answers_that_come_at_once_are_waited_for_awake(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = gw.ones(3)
    assert x.sum().item() == 3.0
    found = connected(session)._awake
    found.limit_s, found._rests_until = 60.0, 0.0
    monkeypatch.setattr(awake, "TAKEN_S", 60.0)
    sleeps = Sleeps(monkeypatch)
    assert (x + 1).sum().item() == 6.0
    assert sleeps.count == 0


@pytest.mark.parametrize(("spin", "usual"), [(0.0, 0.0), (0.003, 1.0), (0.003, math.inf)])
def test_else_the_thread_sleeps(session: Any, monkeypatch: pytest.MonkeyPatch, spin: float, usual: float) -> None:
    x = gw.ones(3)
    assert x.sum().item() == 3.0
    found = connected(session)._awake
    found.limit_s, found.usual = spin, usual
    sleeps = Sleeps(monkeypatch)
    assert (x + 1).sum().item() == 6.0
    assert sleeps.count > 0


@pytest.mark.parametrize(("cores", "told", "limit"), [(1, "0.5", 0.0), (2, "0.5", 0.5), (2, "0", 0.0)])
def test_who_answers_has_the_only_processor(
    session: Any, monkeypatch: pytest.MonkeyPatch, cores: int, told: str, limit: float
) -> None:
    monkeypatch.setattr(connection, "usable_cores", lambda: cores)
    monkeypatch.setenv("GRADWIRE_SPIN_S", told)
    with open_session() as opened:
        assert connected(opened)._awake.limit_s == limit


def test_what_is_usual_follows_what_happens(session: Any) -> None:
    x = gw.ones(3)
    assert x.sum().item() == 3.0
    found = connected(session)._awake
    found.usual = 1e6
    for _ in range(3):
        before = found.usual
        assert (x + 1).sum().item() == 6.0
        assert found.usual < before


def test_frames_that_nobody_waits_for_do_not_look_for_replies_each_time(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    take_in = link.Link._take_in

    def watched(self: Any, connection: Any, timeout: float | None, *more: Any) -> None:
        looks.append(timeout)
        take_in(self, connection, timeout, *more)

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
