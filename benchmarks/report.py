"""Benchmark results: rows, and their table in the terminal, as JSON and as Markdown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from .timing import Figures, paired_ratios


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    Attributes:
        rounds: of each pair of sides.
        quick: a small, single run as a smoke test; its figures mean nothing.
    """

    rounds: int = 15
    quick: bool = False

    def of(self, full: int, quick: int) -> int:
        """A size for a full or a quick run."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Target:
    """The project's target: for the value itself, or for its ratio to torch's."""

    limit: float
    of: Literal["value", "ratio"] = "value"
    at_least: bool = False

    def met(self, found: float) -> bool:
        return found >= self.limit if self.at_least else found <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{'×' if self.of == 'ratio' else ''}"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        theirs: torch's (or a peer's) figures for the same work on this machine, if any.
        note: what a reader needs to judge the figure.
        difference: the figure is a difference of measurements, and may be negative in a quick run.
    """

    benchmark: str
    case: str
    unit: str
    ours: Figures
    theirs: Figures | None = None
    target: Target | None = None
    note: str = ""
    difference: bool = False

    @property
    def ratios(self) -> Figures | None:
        return paired_ratios(self.ours, self.theirs) if self.theirs is not None else None

    @property
    def ratio(self) -> float | None:
        return self.ratios.median if self.ratios is not None else None

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        found = self.ratio if self.target.of == "ratio" else self.ours.median
        assert found is not None, "a target for a ratio needs torch's figures"
        return self.target.met(found)

    def as_data(self) -> dict[str, Any]:
        """The row as JSON-ready data, with every measurement."""

        def figures(found: Figures | None) -> Any:
            if found is None:
                return None
            low, high = found.spread
            return {"median": found.median, "quartiles": [low, high], "values": list(found.values)}

        return {
            "benchmark": self.benchmark, "case": self.case, "unit": self.unit, "gradwire": figures(self.ours),
            "torch": figures(self.theirs), "ratio": self.ratio,
            "ratio_quartiles": list(self.ratios.spread) if self.ratios is not None else None,
            "target": str(self.target) if self.target else None, "met": self.met, "note": self.note,
            "difference": self.difference,
        }  # fmt: skip

    def cells(self) -> list[str]:
        """The row as the table shows it."""
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return [
            self.benchmark, self.case, self.unit, _spell(self.ours), _spell(self.theirs) if self.theirs else "",
            _spell(self.ratios) if self.ratios is not None else "", str(self.target) if self.target else "", verdict,
        ]  # fmt: skip


HEADINGS = ("benchmark", "case", "unit", "gradwire", "torch", "ratio", "target", "")
PEERS = ("benchmark", "case", "unit", "gradwire", "peer", "gradwire / peer", "target", "")


def _spell(figures: Figures) -> str:
    low, high = figures.spread
    return f"{_number(figures.median)} ({_number(low)} to {_number(high)})"


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(rows: list[Row], headings: tuple[str, ...] = HEADINGS) -> Table:
    """The rows for a terminal."""
    found = Table(title=f"gradwire beside {headings[4]}: medians (quartiles)")
    for number, heading in enumerate(headings):
        found.add_column(heading, justify="right" if 3 <= number <= 6 else "left")
    previous = ""
    for row in rows:
        cells = row.cells()
        if previous and row.benchmark != previous:
            found.add_section()
        cells[0] = "" if row.benchmark == previous else row.benchmark
        previous = row.benchmark
        found.add_row(*cells, style="red" if row.met is False else None)
    return found


def markdown(
    rows: list[Row], facts: dict[str, Any], headings: tuple[str, ...] = HEADINGS, by: str = "python -m benchmarks"
) -> str:
    """The rows as a page."""
    lines = [
        "# Benchmarks\n",
        "Medians of interleaved rounds, quartiles in parentheses; a ratio is the median of the rounds' own ratios.",
        f"Written by `{by}`; docs/benchmarks.md explains each figure.\n",
    ]
    lines += [f"- {name}: {_flat(value)}" for name, value in facts.items()]
    lines += ["", f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    lines += [f"| {' | '.join(row.cells())} |" for row in rows]
    noted = [row for row in rows if row.note]
    if noted:
        lines += ["", "Notes:", "", *(f"- {row.benchmark}, {row.case}: {row.note}" for row in noted)]
    return "\n".join(lines) + "\n"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)


def write(
    rows: list[Row], facts: dict[str, Any], path: Path, headings: tuple[str, ...] = HEADINGS,
    by: str = "python -m benchmarks",
) -> list[Path]:  # fmt: skip
    """Write ``path.json`` and ``path.md``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data, page = path.with_name(path.name + ".json"), path.with_name(path.name + ".md")
    data.write_text(json.dumps({"machine": facts, "rows": [row.as_data() for row in rows]}, indent=1) + "\n")
    page.write_text(markdown(rows, facts, headings, by))
    return [data, page]
