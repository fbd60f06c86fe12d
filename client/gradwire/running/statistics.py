"""What ``gradwire run --stats`` ends with: a line of counts, and which lines of the program waited."""

from __future__ import annotations

import sys

from ..round_trips import report
from ..sessions import OPENED


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


def tell(seconds: float) -> None:
    """Print the counts and the time to standard error, as ``name=value`` for eyes and programs alike,
    and the lines of the program that waited for the server."""
    pairs = " ".join(f"{name}={count}" for name, count in totals().items())
    print(f"gradwire run: {pairs} seconds={seconds:.2f}", file=sys.stderr, flush=True)
    waited = report(session.waits.copy() for session in OPENED)
    if len(waited):
        print(waited, file=sys.stderr, flush=True)
