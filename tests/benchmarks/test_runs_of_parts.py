"""The benchmarks of single parts run. Those that take longest are in :mod:`tests.soak.benchmarks`."""

from __future__ import annotations

import pytest

from .quick_runs import check

NAMES = ("traffic", "record", "server_op", "autograd", "transfer", "durability", "sessions", "cold", "time_travel")


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name, tmp_path) -> None:
    check(name, tmp_path)
