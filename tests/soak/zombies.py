"""Claim: nothing counts of a server that is stopped past its lease on shared storage and then continued.

Each time, a training program goes on with another server. It must end with the bits of an undisturbed one.
"""

from __future__ import annotations

import tempfile
import time

from tests.server.shared.zombies import LEASE_S, Servers

from . import Figures, enough, progress

SECONDS = 2400.0
ZOMBIES = 100


def run(most_seconds: float) -> Figures:
    """Make zombies until there were enough, or until the time is over."""
    until = time.monotonic() + most_seconds
    waits: list[float] = []
    seed = int(time.time())
    with tempfile.TemporaryDirectory(prefix="gradwire-zombies-") as store, Servers(store) as servers:
        while len(waits) < ZOMBIES and time.monotonic() < until:
            found = servers.make_zombie(seed + len(waits))
            assert found.right, f"the program with the zombie of seed {seed + len(waits)} has other bits"
            assert found.ended, f"the zombie of seed {seed + len(waits)} did not end by itself"
            waits.append(found.wait_s)
            progress(f"{len(waits)} of {ZOMBIES}")
    waits.sort()
    figures = {
        "zombies": len(waits), "lost or repeated frames": 0, "lease s": LEASE_S,
        "longest wait, median s": round(waits[len(waits) // 2], 2), "longest wait, most s": round(waits[-1], 2),
    }  # fmt: skip
    enough(len(waits), ZOMBIES, "zombies")
    return figures
