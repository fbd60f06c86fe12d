"""A small, single run of a benchmark. Its figures are not judged, because test machines are busy."""

from __future__ import annotations

import json
import math
from pathlib import Path

from benchmarks.__main__ import main


def check(name: str, folder: Path) -> None:
    """Run it, and see that what was written has rows with figures.

    Raises:
        AssertionError: when it has not.
    """
    main([name], quick=True, out=folder / "figures")
    found = json.loads((folder / "figures.json").read_text())
    page = (folder / "figures.md").read_text()
    assert found["rows"]
    for row in found["rows"]:
        assert row["benchmark"] == name
        assert math.isfinite(row["gradwire"]["median"])
        assert row["gradwire"]["median"] > 0 or row["difference"]
        assert row["case"] in page
