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
    seconds = [round(trial.torch.seconds), round(trial.gradwire.seconds) if trial.gradwire else None]
    return {
        "library": trial.entry.shown,
        "version": versions[trial.entry.package],
        "does": trial.entry.does,
        "tolerance": trial.entry.tolerance,
        "seconds": seconds,
        "lacks": trial.lacks,
    }


def write(rows: Mapping[str, dict[str, Any]], torch: str) -> None:
    """Write these rows; those of other entries stay as they are."""
    kept = json.loads(FILE.read_text(encoding="utf-8"))["entries"] if FILE.exists() else {}
    merged = {name: rows.get(name) or kept[name] for name in ENTRIES if name in rows or name in kept}
    entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in merged.items())
    FILE.write_text(f'{{"torch": {json.dumps(torch)},\n"entries": {{\n{entries}\n}}}}\n', encoding="utf-8")
