"""The benchmark of the device runs."""

from __future__ import annotations

from ..benchmarks.quick_runs import check


def test_the_benchmark_runs(tmp_path) -> None:
    check("torch_device", tmp_path)
