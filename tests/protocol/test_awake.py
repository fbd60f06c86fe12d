"""Polling: an end polls for messages that usually come soon, and sleeps where that is quicker."""

from __future__ import annotations

import math

import pytest

from gradwire_protocol.awake import FORGIVEN, REST_S, TAKEN_S, Awake

LIMIT = 1.0
LOOK = TAKEN_S / 10
"""From one look to the next."""


def used_to(usual: float, limit_s: float = LIMIT, cores: int = 2) -> Awake:
    """Waits that took so long."""
    found = Awake(limit_s, cores)
    found.begin(0.0)
    found.end(usual)
    return found


@pytest.mark.parametrize(("usual", "looks"), [(0.5, True), (1.0, False), (5.0, False)])
def test_it_looks_for_what_usually_comes_within_the_limit(usual: float, looks: bool) -> None:
    assert used_to(usual).begin(10.0) is looks


def test_it_sleeps_while_nobody_knows() -> None:
    found = Awake(LIMIT, 2)
    assert found.usual == math.inf
    assert not found.begin(0.0)


@pytest.mark.parametrize(("limit_s", "cores"), [(LIMIT, 1), (0.0, 2)])
def test_it_never_looks_with_one_processor_or_where_it_is_told_not_to(limit_s: float, cores: int) -> None:
    assert not used_to(0.0, limit_s, cores).begin(10.0)


def test_it_looks_until_the_limit() -> None:
    found = used_to(0.1)
    assert found.begin(10.0)
    now, looks = 10.0, 0
    while found.going_on(now := now + LOOK):
        looks += 1
        assert looks < 2 * LIMIT / LOOK
    assert now - 10.0 == pytest.approx(LIMIT, rel=1e-3)
    assert found.begin(now), "that what was expected did not come is no reason to rest"


def test_it_rests_when_somebody_else_had_the_processor() -> None:
    found = used_to(0.1)
    assert found.begin(10.0)
    assert found.going_on(10.0 + LOOK)
    taken = 10.0 + LOOK + 2 * TAKEN_S
    assert not found.going_on(taken)
    assert not found.begin(taken + 0.9 * REST_S)
    assert found.begin(taken + 1.1 * REST_S)


def test_what_it_did_between_two_looks_is_nobody_else() -> None:
    found = used_to(0.1)
    assert found.begin(10.0)
    found.busy(10.0 + 5 * TAKEN_S)
    assert found.going_on(10.0 + 5.5 * TAKEN_S)


def test_one_long_wait_is_soon_forgotten() -> None:
    found = used_to(0.1)
    found.begin(10.0)
    found.end(3610.0)
    assert found.usual <= FORGIVEN * LIMIT
    waits = 0
    while not found.begin(4000.0):
        found.end(4000.1)
        waits += 1
        assert waits < 10
