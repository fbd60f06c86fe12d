"""The output of ``gradwire run --stats``: the program's lines that waited, and a line of counts."""

from __future__ import annotations

import os
import sys
from typing import Final

from ..._core.session.opened import OPENED
from ..._core.session.round_trips import report

FILE_COLUMNS: Final = 120


def totals() -> dict[str, int]:
    """The sums of the counters of all sessions of this program."""
    found: dict[str, int] = dict.fromkeys(
        ("ops", "frames", "round_trips", "bytes_sent", "bytes_received", "reconnects"), 0
    )
    for session in OPENED:
        for name, count in session.stats().items():
            if name in found:
                found[name] += count
    return found


def _columns() -> int:
    """The width of the table: that of the terminal on stderr."""
    try:
        return int(os.environ.get("COLUMNS", "")) or FILE_COLUMNS
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or FILE_COLUMNS
    except (AttributeError, ValueError, OSError):
        return FILE_COLUMNS  # stderr is a file, a pipe or an object of the program


def print_statistics(seconds: float) -> None:
    """Print to stderr the program's lines that waited for the server, and the counts and the time as ``name=value``."""
    pairs = " ".join(f"{name}={count}" for name, count in totals().items())
    waited = report(session.waits.copy() for session in OPENED)
    if len(waited):
        print(waited.text(_columns()), file=sys.stderr)
    print(f"gradwire run: {pairs} seconds={seconds:.2f}", file=sys.stderr, flush=True)
