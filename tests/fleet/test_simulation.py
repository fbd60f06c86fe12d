"""The simulation of a fleet, at a tiny size."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.fleet_simulation import AS_DESIGNED, CHANGED, Fleet, costs, demands, report


def test_a_report_has_all_its_parts() -> None:
    text = report([8, 16], seconds=2.0)
    for heading in ("What saturates first", "Waiting in ordinary operation", "A recovery storm", "Inputs"):
        assert f"## {heading}" in text


def test_all_sessions_of_a_dead_node_recover_and_later_on_fresh_workers() -> None:
    spread = Fleet(64, CHANGED, costs()).storm(1).recovered
    fresh = Fleet(64, replace(CHANGED, spread=False), costs()).storm(1).recovered
    assert len(spread) == len(fresh) == 160
    assert min(spread) > 0
    assert sum(spread) < sum(fresh)


def test_rare_and_short_reports_move_the_directorys_limit() -> None:
    before, after = (next(iter(demands(1000, design, costs(), 4))) for design in (AS_DESIGNED, CHANGED))
    assert before.part == after.part
    assert after.use < before.use / 3


def test_the_directory_is_as_busy_as_its_calls_take() -> None:
    load = Fleet(80, AS_DESIGNED, costs()).steady(20.0)
    expected = next(iter(demands(80, AS_DESIGNED, costs(), 1))).use
    assert abs(load.busy / 20.0 - expected) < expected / 4
