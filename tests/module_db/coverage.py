"""Counts by class, and the file in docs/ that records them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db

import gradwire

from .checks import Case, cases, problems

RECORD = Path(__file__).parents[2] / "docs" / "module_coverage.json"

GAPS: dict[str, str] = {}
"""Classes with inputs that are known not to pass, and why."""


def classes(names: Iterable[str] = ()) -> list[ModuleInfo]:
    """The database's classes, all or those named (``Linear`` or ``nn.Linear``)."""
    wanted = {name.removeprefix("nn.") for name in names}
    found = [info for info in module_db if not wanted or info.name.removeprefix("nn.") in wanted]
    unknown = wanted - {info.name.removeprefix("nn.") for info in found}
    if unknown:
        raise SystemExit(f"not in the module database: {', '.join(sorted(unknown))}")
    return found


def is_there(info: ModuleInfo) -> bool:
    """Whether gradwire has the class."""
    return hasattr(gradwire.nn, info.name.removeprefix("nn."))


def outcomes(info: ModuleInfo, seed: int, only: torch.dtype | None = None) -> Iterator[tuple[Case, list[str]]]:
    """Every input of a class, or of it in one dtype, with what differs on it."""
    torch.manual_seed(seed)
    for case in cases(info, only):
        yield case, problems(case)


def record(counts: dict[str, dict[str, Any]]) -> None:
    """Write the counts, those of other classes as they are."""
    held = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    lines = [f'"{name}": {json.dumps(count)}' for name, count in sorted((held | counts).items())]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
