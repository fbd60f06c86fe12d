"""``python -m tests.libraries``: which libraries work with gradwire, and on its device, as a table."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from typing import Annotated

import typer

from .entries import ENTRIES
from .environment import NotInstalled, Way, prepare, versions
from .record import row, write
from .trial import attempt, run


def main(
    names: Annotated[list[str] | None, typer.Argument(help="entries, as timm or transformers_*; all for none")] = None,
    jobs: Annotated[int, typer.Option(help="programs at a time")] = 2,
    oracle: Annotated[bool, typer.Option(help="run with PyTorch only")] = False,
    way: Annotated[Way | None, typer.Option(help="compare with PyTorch in this way only")] = None,
    verbose: Annotated[bool, typer.Option("-v", help="print what failing programs printed")] = False,
    record: Annotated[bool, typer.Option(help="write the record that docs/libraries.md shows")] = False,
) -> None:
    """Run the programs with PyTorch, with gradwire and on its device, and compare."""
    chosen = [e for name, e in ENTRIES.items() if not names or any(fnmatch(name, wanted) for wanted in names)]
    if not chosen:
        print(f"no such entry; there are {', '.join(ENTRIES)}", file=sys.stderr)
        sys.exit(2)
    try:
        prepare()
    except NotInstalled as error:
        print(f"the libraries cannot be installed: {error}", file=sys.stderr)
        sys.exit(1)
    failed = 0
    installed = versions()
    with ThreadPoolExecutor(jobs) as pool:
        if oracle:
            runs = {pool.submit(run, entry, Way.TORCH): entry for entry in chosen}
            for done in as_completed(runs):
                found, entry = done.result(), runs[done]
                failed += bool(found.failure)
                print(f"{entry.name:<32} {found.seconds:5.1f} s  {found.failure or 'runs'}", flush=True)
                if found.failure and verbose:
                    print(found.output)
        else:
            ways = [Way.GRADWIRE, Way.DEVICE] if way is None else [way]
            for done in as_completed([pool.submit(attempt, entry, ways) for entry in chosen]):
                trial = done.result()
                failed += any(trial.lacks.values())
                if record:  # at once, so that a run that is interrupted has recorded what it did
                    write({trial.entry.name: row(trial, installed)}, installed["torch"])
                for tried, lacks in trial.lacks.items():
                    found = trial.runs.get(tried, trial.runs[Way.TORCH])
                    seconds = f"{trial.runs[Way.TORCH].seconds:5.1f} s {found.seconds:5.1f} s"
                    print(f"{trial.entry.name:<32} {tried.value:<14} {seconds}  {lacks or 'works'}", flush=True)
                    if lacks and verbose:
                        print(found.output)
    print(f"{len(chosen) - failed} of {len(chosen)} work, {failed} do not")
    sys.exit(failed > 0)


typer.run(main)
