"""Measurements of the whole database, stored in ``docs/op_coverage.json``; ``docs/ops.md`` shows them as a table."""

from __future__ import annotations

import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

import torch

import gradwire

from .coverage import Coverage, measure
from .entries import LEFT_OUT, all_entries, chosen

FILE: Final = Path(__file__).parents[2] / "docs" / "op_coverage.json"
KINDS: Final = ("forward", "gradient", "reference", "errors")


def measured(name: str, seed: int) -> tuple[str, dict[str, Any]]:
    """One entry's row of the record."""
    entry = all_entries()[name]
    torch.manual_seed(seed)
    found = measure(entry, gradwire, reference=True)
    if found.lacking:
        return name, {"lacking": True}
    torch.manual_seed(seed)
    return name, row(found)


def row(found: Coverage) -> dict[str, Any]:
    """Counts as [passed, total] by kind and dtype, and the first failure of each kind."""
    counts = {
        kind: {dtype: [c.passed, c.total] for dtype, c in found.counts[kind].items()}
        for kind in KINDS
        if kind in found.counts
    }
    failing: dict[str, Any] = {}
    for kind, by in found.counts.items():
        problems = [f for c in by.values() for f in c.failures]
        if problems:
            failing[kind] = (
                problems[0].split("}, broadcasts_input")[0][:80] + " ... " + problems[0].rsplit("): ", 1)[-1]
            )
    return {**counts, **({"failing": failing} if failing else {})}


def measure_all(names: list[str], seed: int = 0, workers: int = 2) -> dict[str, dict[str, Any]]:
    """The entries of these names, all of them for none, in processes of their own, each with its embedded server. The
    others stay as they are in the record."""
    found = read_record()["entries"] if names and FILE.exists() else {}
    names = list(chosen(names))
    broken = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(measured, name, seed): name for name in names}
        for done, future in enumerate(as_completed(waiting), 1):
            name = waiting[future]
            try:
                found[name] = future.result()[1]
            except Exception as error:  # of the measuring itself; what is measured has its failures counted
                broken[name] = error
            print(f"\r{done}/{len(names)} {name:<60}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for name, error in broken.items():
        print(f"{name} could not be measured: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def write_record(found: dict[str, dict[str, Any]]) -> None:
    """Write the record, an entry a line."""
    entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    left_out = json.dumps(LEFT_OUT, indent=2)
    FILE.write_text(
        f'{{"torch": {json.dumps(torch.__version__.split("+")[0])},\n"left_out": {left_out},\n'
        f'"entries": {{\n{entries}\n}}}}\n',
        encoding="utf-8",
    )


def read_record() -> dict[str, Any]:
    """The record as it is kept."""
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return kept
