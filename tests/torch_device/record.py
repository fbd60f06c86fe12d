"""What passes on the device, kept in ``docs/device_coverage.json``."""

from __future__ import annotations

import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

import torch

from .coverage import DTYPES, KINDS, Coverage, chosen, entries, measure

FILE: Final = Path(__file__).parents[2] / "docs" / "device_coverage.json"


MOST: Final = 30
"""Samples of an entry and dtype that the record is of."""


def measured(name: str, seed: int, most: int = MOST) -> dict[str, Any]:
    """One entry's row of the record."""
    torch.manual_seed(seed)
    return row(measure(entries()[name], most=most, forms=1))


def row(found: Coverage) -> dict[str, Any]:
    """Counts as [passed, total, computed here] by kind and dtype, what was computed here, and the first reason."""
    counts: dict[str, Any] = {
        kind: {dtype: [c.passed, c.total, c.here] for dtype, c in found.counts[kind].items()}
        for kind in KINDS
        if kind in found.counts
    }
    if found.here:
        counts["here"] = sorted(found.here)
    reasons = [r for _, _, c in found.all() for r in c.reasons]
    if reasons:
        counts["failing"] = reasons[0][:60] + " ... " + reasons[0].rsplit("): ", 1)[-1][-160:]
    return counts


def measure_all(names: list[str], seed: int, workers: int, most: int) -> None:
    """Measure the entries of these names, all for none, in processes of their own, and write the record as it grows.
    The others stay as they are in it."""
    found = read_record()["entries"] if FILE.exists() else {}
    names = list(chosen(names))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(measured, name, seed, most): name for name in names}
        for done, future in enumerate(as_completed(waiting), 1):
            name = waiting[future]
            found[name] = future.result()
            print(f"\r{done}/{len(names)} {name:<60}", end="", file=sys.stderr, flush=True)
            if done % 10 == 0 or done == len(names):
                write_record(found, most)
    print(file=sys.stderr)


def shares(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By dtype: samples passed, of how many, forward and gradient, and how many of these with something here."""
    made = {}
    for dtype in DTYPES:
        rows = [r[kind][dtype] for r in found.values() for kind in ("forward", "gradient") if dtype in r.get(kind, {})]
        passed, total, here = (sum(column) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
        share = round(passed / max(total, 1), 4)
        made[dtype] = {"passed": passed, "total": total, "share": share, "computed here": here}
    return made


def write_record(found: dict[str, dict[str, Any]], most: int) -> None:
    """Write the record, an entry a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    version = json.dumps(torch.__version__.split("+")[0])
    lead = f'{{"torch": {version},\n"samples at most": {most},\n"shares": {json.dumps(shares(found), indent=1)},'
    FILE.write_text(f'{lead}\n"entries": {{\n{lines}\n}}}}\n', encoding="utf-8")


def read_record() -> dict[str, Any]:
    """The record as it is kept."""
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return kept
