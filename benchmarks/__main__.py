"""``python -m benchmarks [names...]``: measure, print one table, and write it to files."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from . import machine, report
from .report import Plan, Row
from .servers import as_measured

NAMES: Final = (
    "chain", "mlp", "gpt", "cnn", "lstm", "hvp", "scalars", "traffic", "record", "growth", "server_op", "autograd",
    "transfer", "durability", "fleet", "sessions", "soak", "varied", "schedulers", "models", "cold", "fresh",
    "collectives", "torch_device", "time_travel",
)  # fmt: skip
THREADS: Final = "1 on each side unless a row says 2; client and server are two processes, not bound to cores"
RESULTS: Final = Path(__file__).parent / "results"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Some of: {', '.join(NAMES)}. Default: all.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each comparison.")] = 15,
    quick: Annotated[bool, typer.Option(help="A small, single run. Its figures mean nothing.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write, without suffix. Default: benchmarks/results/.")
    ] = None,
) -> None:
    """Measure gradwire side by side with torch on this machine."""
    chosen = names or list(NAMES)
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(NAMES)}")
    plan = Plan(1 if quick else rounds, quick)
    facts = machine.facts() | {"server": as_measured(), "threads": THREADS, "rounds": plan.rounds}
    console = Console()
    rows: list[Row] = []
    broken: list[str] = []
    for name in chosen:
        began = time.monotonic()
        try:
            with console.status(f"{name} ..."):
                for row in import_module(f"benchmarks.{name}").run(plan):
                    # Figures of a quick run mean nothing, so targets do not apply.
                    rows.append(replace(row, target=None) if quick else row)
                    console.print(f"{name}: {row.case}", style="dim", highlight=False)
            console.print(f"{name} took {time.monotonic() - began:.1f} s", style="dim", highlight=False)
        except Exception:
            # The other benchmarks' figures remain valid.
            broken.append(name)
            traceback.print_exc()
    Console(width=max(console.width, 150)).print(report.table(rows))
    if out is None and not quick:
        out = RESULTS / ("all" if chosen == list(NAMES) else "+".join(chosen))
    if out is not None:
        for path in report.write(rows, facts, out):
            console.print(f"written: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    if broken:
        console.print(f"failed: {', '.join(broken)}", style="red")
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
