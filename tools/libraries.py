"""The record of the libraries that run with gradwire, as the page docs/libraries.md.

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
    works, on_device = (sum(entry["lacks"].get(way) == "" for entry in entries) for way in ("gradwire", "device"))
    lines = [
        HEADER,
        "# Libraries\n",
        f"Libraries of PyPI that are built on PyTorch, in two ways: under `gradwire run`, without PyTorch, where "
        f"{works} of {len(entries)} work; and with PyTorch on [gradwire's device](device.md), where "
        f"{on_device} work.\n",
        "Each runs a program of `tests/libraries/programs` that trains something small: with "
        f"PyTorch {record['torch']} on the CPU; with gradwire in an environment without PyTorch; and with PyTorch and "
        '`DEVICE=gradwire`, by which the program puts its modules and data on `device="gradwire"`, or sets the default '
        "device. It works if all results (losses, outputs, gradients) are the same up to the tolerance: relative, or "
        "absolute below 1. Weights and data come from NumPy, models from configurations; nothing is downloaded.\n",
        "`make libraries` installs them under `build/libraries` (about 3 GB) and runs them; "
        "`make libraries ARGS='timm peft'` runs some, `ARGS='--way device'` in one way, and "
        "`make libraries ARGS=--record` writes this table anew. "
        "`tests/libraries/constraints.txt` has the versions.\n",
        '| library | version | the program | tolerance | `gradwire run` | `device="gradwire"` '
        "| PyTorch, s | gradwire, s | device, s |",
        "|---|---|---|---|---|---|---:|---:|---:|",
    ]
    for entry in entries:
        found = " | ".join(_found(entry["lacks"].get(way)) for way in ("gradwire", "device"))
        seconds = " | ".join(str(entry["seconds"].get(way, "")) for way in ("torch", "gradwire", "device"))
        told = f"{entry['library']} | {entry['version']} | {_cell(entry['does'])} | {entry['tolerance']:g}"
        lines.append(f"| {told} | {found} | {seconds} |")
    lines.append(
        "\nWhere one does not work, the table has what it lacks first. The seconds are those of whole programs, "
        "imports and the embedded server's start included, on two cores. Compiled extensions of libraries are linked "
        "against PyTorch and do not load without it; a library that works under `gradwire run` does without them."
    )
    return "\n".join(lines) + "\n"


def _found(lacks: str | None) -> str:
    """What a program came to in one way; nothing if it was not tried."""
    if lacks is None:
        return ""
    return f"no: {_code(lacks)}" if lacks else "works"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return "`" + _cell(text).replace("`", "'") + "`"
