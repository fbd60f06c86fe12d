"""The benchmarks that take longest run. The ordinary tests run all others."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from tests.benchmarks.quick_runs import check

from . import Figures, enough

SECONDS = 900.0
NAMES: Final = ("fleet", "collectives", "fresh", "schedulers")
"""Each takes half a minute and more, most of it for the start of servers."""


def run(most_seconds: float) -> Figures:
    """Each once, in its quick form."""
    end = time.monotonic() + most_seconds
    took: dict[str, float] = {}
    for name in NAMES:
        if time.monotonic() > end:
            break
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            check(name, Path(folder))
        took[f"{name} (s)"] = round(time.monotonic() - began, 1)
    enough(len(took), len(NAMES), "benchmarks")
    return took
