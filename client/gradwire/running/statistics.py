"""What ``gradwire run --stats`` ends with: which lines of the program waited, and a line of counts."""

from __future__ import annotations

import os
import sys
from typing import Final

from ..round_trips import report
from ..sessions import OPENED

FILE_COLUMNS: Final = 120


def totals() -> dict[str, int]:
    """What all sessions that this program opened have counted, added up."""
    found: dict[str, int] = dict.fromkeys(
        ("ops", "frames", "round_trips", "bytes_sent", "bytes_received", "reconnects"), 0
    )
    for session in OPENED:
        for name, count in session.stats().items():
            if name in found:
                found[name] += count
    return found


def _columns() -> int:
    """How wide the table may be: where standard error goes, wherever standard output does."""
    try:
        return int(os.environ.get("COLUMNS", "")) or FILE_COLUMNS
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or FILE_COLUMNS
    except (AttributeError, ValueError, OSError):
        return FILE_COLUMNS  # a file, a pipe, or something of the program's own


def tell(seconds: float) -> None:
    """Print the counts and the time to standard error, as ``name=value`` for eyes and programs alike,
    and the lines of the program that waited for the server."""
    pairs = " ".join(f"{name}={count}" for name, count in totals().items())
    waited = report(session.waits.copy() for session in OPENED)
    if len(waited):
        print(waited.text(_columns()), file=sys.stderr)
    print(f"gradwire run: {pairs} seconds={seconds:.2f}", file=sys.stderr, flush=True)
