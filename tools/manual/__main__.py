"""``python -m tools.manual`` builds the manual."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from . import site, sources


def main(
    out: Annotated[Path, typer.Option(help="Where the site goes.", show_default="the server's package")] = site.SITE,
    work: Annotated[Path, typer.Option(help="Where sources and caches go.", show_default="build/manual")] = site.BUILD,
    afresh: Annotated[bool, typer.Option("--afresh", help="Forget what earlier builds read.")] = False,
) -> None:
    """Build the manual. Every warning is an error."""
    started = time.monotonic()
    if afresh:
        sources.clear(work)
    sources.write(work / "source")
    try:
        site.build(work / "source", out, work)
    except site.Warned as warned:
        print(warned, file=sys.stderr)
        raise typer.Exit(1) from None
    files, size = site.size(out)
    print(f"{out}: {files} files, {size / 1e6:.1f} MB, in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    typer.run(main)
