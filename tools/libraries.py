"""The record of the libraries that run under gradwire, as the page docs/libraries.md.

``make libraries ARGS=--record`` writes the record, ``tests/libraries/results.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path(__file__).parents[1] / "tests" / "libraries" / "results.json"
HEADER: Final = "<!-- Derived from tests/libraries/results.json: change that, and run `make derive`. -->\n"


def page() -> str:
    """The page."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    entries: list[dict[str, Any]] = list(record["entries"].values())
    works = [entry for entry in entries if not entry["lacks"]]
    lines = [
        HEADER,
        "# Libraries\n",
        f"Libraries of PyPI that are built on PyTorch, under `gradwire run`. {len(works)} of {len(entries)} work. "
        "Each runs a program of `tests/libraries/programs` that trains something small, once with "
        f"PyTorch {record['torch']} and once with gradwire in an environment without PyTorch. It works if all results "
        "(losses, outputs, gradients) are the same up to the tolerance: relative, or absolute below 1. Weights and "
        "data come from NumPy, models from configurations; nothing is downloaded.\n",
        "`make libraries` installs them under `build/libraries` (about 3 GB) and runs them; "
        "`make libraries ARGS='timm peft'` runs some, and `make libraries ARGS=--record` writes this table anew. "
        "`tests/libraries/constraints.txt` has the versions.\n",
        "| library | version | the program | tolerance | works, or what it lacks first | PyTorch, s | gradwire, s |",
        "|---|---|---|---|---|---:|---:|",
    ]
    for entry in entries:
        theirs, ours = entry["seconds"]
        found = "works" if not entry["lacks"] else f"no: {_code(entry['lacks'])}"
        lines.append(
            f"| {entry['library']} | {entry['version']} | {_cell(entry['does'])} | {entry['tolerance']:g} | {found} "
            f"| {theirs} | {'' if ours is None else ours} |"
        )
    lines.append(
        "\nThe seconds are those of whole programs, imports and the embedded server's start included, on two cores. "
        "Compiled extensions of libraries are linked against PyTorch and do not load without it; a library that works "
        "does without them."
    )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return "`" + _cell(text).replace("`", "'") + "`"
