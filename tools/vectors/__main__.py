"""The command ``python -m tools.vectors``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .derivation import frozen, stale, update
from .store import FOLDER, Broken

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    check: Annotated[
        bool, typer.Option(help="Write nothing; exit 1 if a vector is missing or no longer holds.")
    ] = False,
    freeze: Annotated[str, typer.Option(help="Freeze the vectors that there are as those of this release.")] = "",
    folder: Annotated[Path, typer.Option(help="Where the vectors are.", show_default="protocol/vectors/v1")] = FOLDER,
) -> None:
    """Write the conformance vectors that follow from the code."""
    try:
        if check or freeze:
            problems = stale(folder)
            for problem in problems:
                print(problem)
            if problems:
                raise typer.Exit(1)
            if freeze:
                frozen(folder, freeze)
            return
        for path in update(folder):
            print(f"written: {path}")
    except Broken as error:
        print(error)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
