"""The benchmarks of steps that read a value, and of growing graphs, run."""

from __future__ import annotations

import pytest

from .quick_runs import check

NAMES = ("chain", "hvp", "scalars", "growth", "varied", "soak")


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name, tmp_path) -> None:
    check(name, tmp_path)
