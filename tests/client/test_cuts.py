"""``tests.soak.cuts`` for a selection of bytes: wherever a connection is cut, the bits are the same."""

from __future__ import annotations

import pytest
from tests.cutting_relay import Cut
from tests.soak import cuts


@pytest.fixture(scope="module")
def ground():
    with cuts.cutter() as found:
        found.uncut = found.run([])
        found.passed = found.relay.passed[0]
        yield found


def test_an_undisturbed_run_is_never_resumed(ground):
    again = ground.run([])
    assert again == ground.uncut
    assert again.reconnects == 0
    assert again.applied == again.sent


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_run_cut_anywhere_ends_with_the_same_bits(ground, way, how):
    most = ground.passed.of(way)
    for i in range(15):
        cut = Cut(most * i // 15 + i, way, how)
        found = ground.run([cut])
        cuts.check(ground.uncut, found, cut)


def test_a_run_cut_again_and_again_ends_with_the_same_bits(ground):
    many = [Cut(700 + 97 * i, "up" if i % 2 else "down", "rst" if i % 3 else "fin") for i in range(8)]
    found = ground.run(many)
    cuts.check(ground.uncut, found, many[0])
    assert found.reconnects > 3


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_connection_that_goes_silent_is_left(ground, way):
    cut = Cut(ground.passed.of(way) // 2, way, "stall")
    found = ground.run([cut], heartbeat=0.1)
    cuts.check(ground.uncut, found, cut)
    assert found.reconnects >= 1


def test_a_session_in_a_worker_process_is_resumed_with_the_same_bits_as_one_in_the_server(ground):
    resumed = 0
    with cuts.cutter(session_host="process") as apart:
        for way in ("up", "down"):
            for i in range(4):
                cut = Cut(ground.passed.of(way) * i // 4 + i, way, "rst" if i % 2 else "fin")
                found = apart.run([cut])
                cuts.check(ground.uncut, found, cut)
                resumed += found.reconnects
    assert resumed > 3
