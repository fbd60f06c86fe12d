"""``gradwire sessions export`` and ``import``: a session as a file, moved in pieces and with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from .rest import Rest

PIECE_BYTES: Final = 1 << 20
SAFETENSORS: Final = "application/safetensors"

Told = Callable[[int], None]


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int | None], Told]]:
    """A bar on stderr. Yields a function that takes the total, where it is known only later, and returns one that
    takes the bytes that were moved."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def begin(found: int | None) -> Told:
            bar.update(task, total=found)
            return lambda moved: bar.update(task, advance=moved)

        yield begin


def export_session(rest: Rest, session: str, target: Path) -> int:
    """Write what a session holds to a file, which is there whole or not at all; returns its size.

    Raises:
        GradwireError: what the server says.
        OSError: when the file cannot be written.
    """
    partial = target.with_name(target.name + ".part")
    try:
        with (
            rest.download(f"/v1/sessions/{session}/export") as (size, pieces),
            progress(f"exporting {session}", size) as begin,
            partial.open("wb") as file,
        ):
            told = begin(size)
            for piece in pieces:
                file.write(piece)
                told(len(piece))
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size


def import_session(rest: Rest, source: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Start a session with what a file holds; returns the server's summary of it.

    Raises:
        GradwireError: what the server says.
        OSError: when the file cannot be read.
    """
    size = source.stat().st_size
    with source.open("rb") as file, progress(f"importing {source.name}", size) as begin:
        told = begin(size)

        def pieces() -> Iterator[bytes]:
            while piece := file.read(PIECE_BYTES):
                yield piece
                told(len(piece))

        made: dict[str, Any] = rest.upload("/v1/sessions/import", pieces(), size, SAFETENSORS, wanted)
    return made
