"""Tests that take minutes. ``make soak`` runs all, ``python -m tests.soak cuts kills`` some.

Each module is one claim. ``SECONDS`` is its default time limit, and ``run(most_seconds) -> figures`` returns
measurements by name. It raises an ``AssertionError`` if the claim does not hold, or if the time was too short to show
it. The ordinary tests have a small version of each.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, Final

Figures = dict[str, Any]

SAY_EVERY_S: Final = 30.0
CLIENTS_NICENESS: Final = 15
_said = [time.monotonic()]


def enough(done: float, of: float, what: str) -> None:
    """Fail when the time was over before there were as many as the claim says."""
    assert done >= of, f"{done:,.0f} of {of:,.0f} {what} in the time given: what there was is as claimed"


def yield_processor() -> None:
    """Let this thread, and those it starts, run when others leave the processor free.

    For clients: elsewhere they have machines of their own, and how fast a server answers must not depend on theirs.
    """
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), CLIENTS_NICENESS)


def progress(text: str) -> None:
    """Show how far a claim has come: on a terminal in one line, elsewhere in a line now and then."""
    if sys.stderr.isatty():
        print(f"\r\033[K  {text:.110}", end="", file=sys.stderr, flush=True)
    elif text and time.monotonic() - _said[0] > SAY_EVERY_S:
        _said[0] = time.monotonic()
        print(f"  {text}", file=sys.stderr, flush=True)
