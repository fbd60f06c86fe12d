"""Patience counts time spent trying; a sleeping machine uses none of it, by any clock."""

from __future__ import annotations

import pytest

from gradwire._core.wire.connection import retry_after
from gradwire._core.wire.retry import LONGEST_PAUSE_S, RetryPolicy, chosen
from gradwire_protocol.errors import ArgumentValueError

NAME = "GRADWIRE_PATIENCE"


class Machine:
    """Its clocks, and how long it sleeps on the way. One clock stands while it sleeps, one runs."""

    def __init__(self) -> None:
        self.awake = 1000.0
        self.wall = 5000.0
        self.naps: list[float] = []

    def pass_time(self, seconds: float) -> None:
        self.awake += seconds
        self.wall += seconds + (self.naps.pop(0) if self.naps else 0.0)

    def patience(self, seconds: float) -> RetryPolicy:
        return RetryPolicy(seconds, (lambda: self.awake, lambda: self.wall), self.pass_time)


def tries(machine: Machine, patience: RetryPolicy, each: float) -> int:
    """How often something is tried that fails after so many seconds."""
    count = 0
    while count < 10_000:
        with patience.trying(each):
            machine.pass_time(each)
        count += 1
        if not patience.pause():
            return count
    raise AssertionError("patience has no end")


def test_tries_go_on_until_the_time_is_spent():
    machine = Machine()
    count = tries(machine, machine.patience(120), each=1)
    assert 120 / (LONGEST_PAUSE_S + 1) - 1 <= count <= 120
    assert 119 <= machine.awake - 1000 <= 127


def test_without_patience_there_is_one_try():
    machine = Machine()
    assert tries(machine, machine.patience(0), each=1) == 1


@pytest.mark.parametrize("when", [0, 1, 5])
def test_an_hour_of_sleep_takes_nothing_away(when):
    machine = Machine()
    patience = machine.patience(20)
    machine.naps = [0.0] * when + [3600.0]
    began = machine.awake
    tries(machine, patience, each=1)
    assert machine.awake - began >= 20  # awake and trying


def test_the_last_pause_before_the_end_may_be_slept_through():
    machine = Machine()
    patience = machine.patience(10)
    with patience.trying(9.9):
        machine.pass_time(9.9)
    machine.naps = [3600.0]
    assert patience.pause()
    assert patience.spent == 0  # it begins anew: the network of a machine that woke needs a moment


def test_a_clock_that_is_set_back_is_no_time():
    machine = Machine()
    patience = machine.patience(10)
    with patience.trying(5):
        machine.pass_time(2)
        machine.wall -= 7200
    assert patience.spent == pytest.approx(2)


def test_pauses_grow_and_are_spread_from_zero_on():
    machine = Machine()
    patience = machine.patience(1e9)
    early = [Machine().patience(1).next_pause() for _ in range(200)]
    late = []
    for _ in range(200):
        patience.tries = 50
        late.append(patience.next_pause())
    assert max(early) < 0.06
    assert max(late) <= LONGEST_PAUSE_S
    assert min(late) < LONGEST_PAUSE_S / 4  # full jitter: clients that lost the same server come back one by one
    assert max(late) > LONGEST_PAUSE_S * 3 / 4


def test_the_server_may_ask_for_a_longer_pause_but_not_for_more_than_there_is():
    machine = Machine()
    patience = machine.patience(60)
    began = machine.awake
    assert patience.pause(asked=20)
    assert machine.awake - began == pytest.approx(20)
    assert not patience.pause(asked=50)


def test_something_achieved_begins_it_anew():
    machine = Machine()
    patience = machine.patience(10)
    with patience.trying(9):
        machine.pass_time(9)
    patience.renew()
    assert patience.spent == 0
    assert patience.pause()


def test_the_argument_comes_before_the_environment_and_both_before_the_default(monkeypatch):
    assert chosen(NAME, None, 120.0) == 120
    monkeypatch.setenv(NAME, "7.5")
    assert chosen(NAME, None, 120.0) == 7.5
    assert chosen(NAME, 3, 120.0) == 3


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_what_is_no_number_of_seconds_is_refused(monkeypatch, value):
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ArgumentValueError, match=NAME):
        chosen(NAME, None, 120.0)


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 0), ("", 0), ("3", 3), ("0.5", 0.5), ("-4", 0), ("nan", 0), ("tomorrow", 0)]
)
def test_retry_after_is_read_as_a_number(text, seconds):
    assert retry_after(text) == seconds


def test_retry_after_is_read_as_a_date():
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after("Fri, 31 Dec 2125 23:59:59 GMT") > 1e9
