"""The benchmarks that train models run."""

from __future__ import annotations

import pytest

from .quick_runs import check

NAMES = ("mlp", "gpt", "cnn", "lstm", "models")


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name, tmp_path) -> None:
    check(name, tmp_path)
