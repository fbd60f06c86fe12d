"""``tests.soak.kills`` with a few kills: programs do not notice a server that dies and restarts."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from tests.soak import kills

STEPS = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with patch("gradwire._core.wire.retry.LONGEST_PAUSE_S", 0.2):
        found = kills.MortalServer(tmp_path_factory.mktemp("server") / "data", journal_bytes=100_000)
        try:
            yield found
        finally:
            found.kill()


@pytest.mark.parametrize(("durability", "times"), [("durable", 3), ("applied", 2)])
def test_a_killed_server_costs_a_run_nothing_but_time(server, durability, times):
    expected, sent = kills.undisturbed(server, STEPS)
    frames = [sent * (i + 1) // (times + 1) for i in range(times)]
    end, figures = kills.disturbed(server, durability, STEPS, frames, seed=3, again=0)
    assert figures["kills"] == times
    assert figures["resumed"] >= times
    assert end == expected
