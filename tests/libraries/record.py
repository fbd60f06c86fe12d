"""The record of the last whole run, ``results.json``, which docs/libraries.md shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .entries import ENTRIES
from .trial import Trial

FILE: Final = Path(__file__).parent / "results.json"


def row(trial: Trial, versions: Mapping[str, str]) -> dict[str, Any]:
    """What the record keeps of a trial."""
    return {
        "library": trial.entry.shown,
        "version": versions[trial.entry.package],
        "does": trial.entry.does,
        "tolerance": trial.entry.tolerance,
        "seconds": {way.value: round(found.seconds) for way, found in trial.runs.items()},
        "lacks": {way.value: lacks for way, lacks in trial.lacks.items()},
    }


def _merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """A row with what is told now in the place of what was told before, way by way."""
    return {**before, **now, **{key: {**before.get(key, {}), **now.get(key, {})} for key in ("seconds", "lacks")}}


def write(rows: Mapping[str, dict[str, Any]], torch: str) -> None:
    """Write these rows. Those of other entries stay as they are, and so does what was not tried."""
    kept = json.loads(FILE.read_text(encoding="utf-8"))["entries"] if FILE.exists() else {}
    merged = {name: _merged(kept.get(name, {}), rows.get(name, {})) for name in ENTRIES if name in rows or name in kept}
    entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in merged.items())
    FILE.write_text(f'{{"torch": {json.dumps(torch)},\n"entries": {{\n{entries}\n}}}}\n', encoding="utf-8")
