"""The record of PyTorch's op database, as a section of ``docs/ops.md``.

``make coverage`` writes the record, ``docs/op_coverage.json``, and the tests check it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path(__file__).parents[1] / "docs" / "op_coverage.json"
KINDS: Final = {"forward": "forward", "gradient": "gradient", "reference": "reference inputs", "errors": "error inputs"}


def section() -> Iterator[str]:
    """The lines of the section; none without a record."""
    if not RECORD.exists():
        return
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    entries: dict[str, Any] = record["entries"]
    had = {name: counts for name, counts in entries.items() if "lacking" not in counts}
    whole = [name for name, counts in had.items() if all(p == t for p, t in totals(counts).values())]
    names = {name.split("/")[0] for name in entries}
    yield "\n## The op database of PyTorch\n"
    yield (
        f"The wheel of torch {record['torch']} contains a database of its operations with sample inputs. "
        f"It has {len(names) + len(record['left_out'])} names; {len(record['left_out'])} are out of scope "
        f"(below). Of the {len(entries)} entries of the other {len(names)} names (a name can have several variants), "
        f"{len(whole)} pass all samples in every dtype, {len(had) - len(whole)} pass some, "
        f"{len(entries) - len(had)} are missing. Samples are compared with torch on the same inputs: values, dtypes, "
        "shapes, `requires_grad`, gradients; for error inputs, the exception's class. The dtypes for "
        "storage (uint16, uint32, uint64, float8) are not among those, and complex32 is no dtype of gradwire's.\n"
    )
    yield "| samples | pass | of | share |"
    yield "|---|---:|---:|---:|"
    for kind, told in KINDS.items():
        passed, of = map(sum, zip(*[totals(c).get(kind, (0, 0)) for c in had.values()]))
        if of:
            yield f"| {told} | {passed:,} | {of:,} | {100 * passed / of:.3f} % |"
    yield "\n| entry | covered | failing samples |"
    yield "|---|---|---|"
    for name in sorted(entries, key=str.lower):
        covered = "no" if name not in had else "yes" if name in whole else "partly"
        yield f"| `{name}` | {covered} | {gaps(entries[name])} |"
    yield "\nNames out of scope:\n"
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
    """The failing samples of an entry, in words."""
    parts = []
    for kind, told in KINDS.items():
        short = {d: (p, t) for d, (p, t) in counts.get(kind, {}).items() if p < t}
        if short:
            listed = ", ".join(f"{t - p} of {t}" + ("" if d == "any" else f" in {d}") for d, (p, t) in short.items())
            parts.append(f"{told}: {listed}")
    return "; ".join(parts)
