"""``gradwire conformance``: the command, its progress and its report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final

import httpx
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ..asking import Json
from ..printing import print_json
from .groups import Outcome, run_group
from .scripts import Mismatch, Target
from .vectors import Vector, folder, load_all

VERDICTS: Final = ("passed", "failed", "skipped", "offline")
LINES_SHOWN: Final = 8
FAILURES_SHOWN: Final = 50


def conformance(
    url: Annotated[str, typer.Argument(help="URL of the server.")] = "http://127.0.0.1:8000",
    api_key: Annotated[str, typer.Option(envvar="GRADWIRE_API_KEY", help="An API key of the server.")] = "",
    other_key: Annotated[str, typer.Option(envvar="GRADWIRE_OTHER_KEY", help="A key of another tenant.")] = "",
    admin_key: Annotated[str, typer.Option(envvar="GRADWIRE_ADMIN_KEY", help="A key with the scope admin.")] = "",
    origin: Annotated[str, typer.Option(help="An origin of web pages that the server allows.")] = "",
    only: Annotated[str, typer.Option(help="Run only vectors whose id contains this text.")] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the vectors and what they say; run nothing.")] = False,
    vectors: Annotated[Path | None, typer.Option(help="Folder of vectors. Default: those of this version.")] = None,
    json: Json = False,
) -> None:
    """Run the protocol's conformance vectors against a server. Exits with 1 if one fails.

    Vectors that need another tenant's key, an admin key or an allowed origin are skipped without it. Each session that
    they use is deleted.
    """
    chosen = list(load_all(vectors or folder(), only))
    if list_ and json:
        rows = [
            {"group": name, "id": vector["id"], "text": vector["text"]} for name, group in chosen for vector in group
        ]
        print_json({"vectors": rows})
        return
    if list_:
        for _, group in chosen:
            for vector in group:
                typer.echo(f"{vector['id']}: {vector['text']}")
        return
    if not chosen:
        raise typer.BadParameter(f"no vector's id contains {only!r}", param_hint="--only")
    keys = {role: key for role, key in
            (("default", api_key), ("other", other_key), ("admin", admin_key)) if key}  # fmt: skip
    try:
        with Target(url, keys, origin) as target:
            outcomes = _run(target, chosen)
    except (Mismatch, httpx.HTTPError, OSError) as error:
        typer.echo(f"{url}: {error}", err=True)
        raise typer.Exit(1) from None
    if json:
        print_json({"outcomes": [_outcome(name, each) for name, group in outcomes.items() for each in group]})
    else:
        _report(outcomes)
    if any(outcome.verdict == "failed" for group in outcomes.values() for outcome in group):
        raise typer.Exit(1)


def _outcome(group: str, outcome: Outcome) -> dict[str, Any]:
    return {"group": group, "id": outcome.vector["id"], "verdict": outcome.verdict, "lines": list(outcome.lines),
            "seconds": round(outcome.seconds, 6)}  # fmt: skip


def _run(target: Target, chosen: list[tuple[str, list[Vector]]]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=sum(len(group) for _, group in chosen))
        for name, group in chosen:
            bar.update(task, description=name)
            found[name] = []
            for outcome in run_group(target, name, group):
                found[name].append(outcome)
                bar.advance(task)
    return found


def _report(outcomes: dict[str, list[Outcome]]) -> None:
    failed = [outcome for group in outcomes.values() for outcome in group if outcome.verdict == "failed"]
    for outcome in failed[:FAILURES_SHOWN]:
        typer.echo(f"FAILED {outcome.vector['id']}: {outcome.vector['text']}")
        for line in outcome.lines[:LINES_SHOWN]:
            typer.echo(f"    {line}")
        if len(outcome.lines) > LINES_SHOWN:
            typer.echo(f"    and {len(outcome.lines) - LINES_SHOWN} more differences")
    if len(failed) > FAILURES_SHOWN:
        typer.echo(f"and {len(failed) - FAILURES_SHOWN} more failed")
    reasons = Counter(line for group in outcomes.values() for each in group if each.verdict == "skipped"
                      for line in each.lines)  # fmt: skip
    for reason, count in reasons.items():
        typer.echo(f"skipped {count}: {reason}")
    table = Table("group", *VERDICTS, "seconds")
    total: Counter[str] = Counter()
    for name, group in outcomes.items():
        counts = Counter(outcome.verdict for outcome in group)
        total += counts
        table.add_row(name, *_cells(counts), f"{sum(outcome.seconds for outcome in group):.2f}")
    table.add_section()
    seconds = sum(outcome.seconds for group in outcomes.values() for outcome in group)
    table.add_row("all", *_cells(total), f"{seconds:.2f}")
    Console().print(table)


def _cells(counts: Counter[str]) -> list[str]:
    return [str(counts[verdict] or "") for verdict in VERDICTS]
