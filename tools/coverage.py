"""The record of what was measured over PyTorch's op database, as a section of ``docs/ops.md``.

The record, ``docs/op_coverage.json``, is written by ``make coverage``, and held by the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path(__file__).parents[1] / "docs" / "op_coverage.json"
KINDS: Final = {"forward": "forward", "gradient": "gradient", "reference": "reference inputs", "errors": "error inputs"}


def section() -> Iterator[str]:
    """The lines of the section; none where nothing was measured yet."""
    if not RECORD.exists():
        return
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    entries: dict[str, Any] = record["entries"]
    had = {name: counts for name, counts in entries.items() if "lacking" not in counts}
    whole = [name for name, counts in had.items() if all(p == t for p, t in totals(counts).values())]
    names = {name.split("/")[0] for name in entries}
    yield "\n## The op database of PyTorch\n"
    yield (
        f"The wheel of torch {record['torch']} packages a database of its own operations with inputs to try them on. "
        f"It has {len(names) + len(record['left_out'])} names; {len(record['left_out'])} are no part of gradwire "
        f"(below). Of the {len(entries)} entries of the other {len(names)} names (a name can have several variants), "
        f"{len(whole)} pass all of their samples in every dtype, {len(had) - len(whole)} some, "
        f"{len(entries) - len(had)} are lacking. Samples are compared with torch on the same inputs: values, dtypes, "
        "shapes, `requires_grad`, gradients; for error inputs the class of the exception. complex32 and the unsigned "
        "integers beyond uint8 are not among gradwire's dtypes and do not count.\n"
    )
    yield "| samples | pass | of | share |"
    yield "|---|---:|---:|---:|"
    for kind, told in KINDS.items():
        passed, of = map(sum, zip(*[totals(c).get(kind, (0, 0)) for c in had.values()]))
        if of:
            yield f"| {told} | {passed:,} | {of:,} | {100 * passed / of:.3f} % |"
    yield "\n| entry | covered | which samples do not pass |"
    yield "|---|---|---|"
    for name in sorted(entries, key=str.lower):
        covered = "no" if name not in had else "yes" if name in whole else "partly"
        yield f"| `{name}` | {covered} | {gaps(entries[name])} |"
    yield "\nNames that do not count:\n"
    for name, why in record["left_out"].items():
        yield f"- `{name}`: {why}"


def totals(counts: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Passed and total by kind."""
    return {
        kind: (sum(p for p, _ in counts[kind].values()), sum(t for _, t in counts[kind].values()))
        for kind in KINDS
        if kind in counts
    }


def gaps(counts: dict[str, Any]) -> str:
    """In words, what does not pass of an entry."""
    parts = []
    for kind, told in KINDS.items():
        short = {d: (p, t) for d, (p, t) in counts.get(kind, {}).items() if p < t}
        if short:
            listed = ", ".join(f"{t - p} of {t}" + ("" if d == "any" else f" in {d}") for d, (p, t) in short.items())
            parts.append(f"{told}: {listed}")
    return "; ".join(parts)
