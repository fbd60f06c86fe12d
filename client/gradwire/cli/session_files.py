"""``gradwire sessions export`` and ``import``: transfer a session in chunks, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from .._core.wire.rest import RestClient

CHUNK_BYTES: Final = 1 << 20
SAFETENSORS: Final = "application/safetensors"

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int | None], Advance]]:
    """A progress bar on stderr. Yields a function that sets the total, which may be known late, and returns a function
    that adds transferred bytes."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def begin(size: int | None) -> Advance:
            bar.update(task, total=size)
            return lambda count: bar.update(task, advance=count)

        yield begin


def export_session(rest: RestClient, session: str, target: Path, what: str = "export") -> int:
    """Export a session to a file atomically; returns the file's size.

    Args:
        what: what to export: ``export`` for its tensors, ``history/recording`` for its journal.

    Raises:
        GradwireError: an error of the server.
        OSError: when the file is not writable.
    """
    partial = target.with_name(target.name + ".part")
    try:
        with (
            rest.download(f"/v1/sessions/{session}/{what}") as (size, chunks),
            progress(f"exporting {session}", size) as begin,
            partial.open("wb") as file,
        ):
            advance = begin(size)
            for chunk in chunks:
                file.write(chunk)
                advance(len(chunk))
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size


def import_session(rest: RestClient, source: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Create a session from a file; returns the server's summary of it.

    Raises:
        GradwireError: an error of the server.
        OSError: when the file is not readable.
    """
    size = source.stat().st_size
    with source.open("rb") as file, progress(f"importing {source.name}", size) as begin:
        advance = begin(size)

        def chunks() -> Iterator[bytes]:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
                advance(len(chunk))

        made: dict[str, Any] = rest.upload("/v1/sessions/import", chunks(), size, SAFETENSORS, options)
    return made
