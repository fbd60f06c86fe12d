"""A gradwire server without one of its schedulers, for measuring what that scheduler gives.

``python -m benchmarks.altered_server NAME ARGUMENTS...``: NAME is a key of :data:`WITHOUT`; the arguments are the
server's. Sessions must run inline: worker processes are started without the change.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any, Final


def _without_predictor() -> None:
    from gradwire_server.hosting.duration_predictor import DurationPredictor

    never: Any = lambda *_: False
    DurationPredictor.is_short = never  # type: ignore[method-assign]


def _without_direct_reception() -> None:
    from gradwire_server.http import connection_limits

    never: Any = lambda *_: False
    connection_limits.LimitedStream.receive_directly = never  # type: ignore[method-assign]


def _without_semaphore() -> None:
    from gradwire_server.hosting import compute_semaphore

    compute_semaphore.SHARED.most = 1 << 30


WITHOUT: Final[dict[str, Callable[[], None]]] = {
    "duration predictor": _without_predictor,
    "direct reception": _without_direct_reception,
    "compute semaphore": _without_semaphore,
}


if __name__ == "__main__":
    WITHOUT[sys.argv.pop(1)]()
    runpy.run_module("gradwire_server", run_name="__main__", alter_sys=True)
