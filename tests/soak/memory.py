"""No kernel of the op table, forward or backward, uses much more memory than was known before it ran."""

from __future__ import annotations

import time
import tracemalloc

from tests.engine.test_memory_of_ops import NAMES, watch

from . import Figures, enough, progress

SECONDS = 900.0


def run(most_seconds: float = SECONDS) -> Figures:
    """Go through the ops until the time is over."""
    end = time.monotonic() + most_seconds
    excess: dict[str, str] = {}
    kernels = done = 0
    for name in NAMES:
        tracemalloc.start()
        found = watch(name)
        tracemalloc.stop()
        excess |= {op: f"{ratio:.1f} times too much: {what}" for op, (ratio, what) in found.excess.items()}
        kernels += found.seen
        done += 1
        progress(f"{done} of {len(NAMES)} ops, {name}")
        if time.monotonic() > end:
            break
    assert not excess, excess
    enough(done, len(NAMES), "ops")
    return {"ops": done, "of": len(NAMES), "kernels that took enough to tell": kernels}
