"""``python -m tests.fleet.model``: explore the protocol; ``--large`` more of it, ``--bug NAME`` with a planted bug."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from .exploring import explore, lines
from .planted import LIVENESS, PLANTED
from .state import Bounds

ORDINARY: Final = (
    Bounds(owners=2, frames=1, late=1, retries=1, releases=0, rotations=1),
    Bounds(owners=2, frames=3, late=0, retries=0, releases=0, rotations=1),
)
"""What the tests explore."""

LARGE: Final = (
    Bounds(owners=2, frames=3, late=1, retries=0, releases=0, rotations=1),
    Bounds(owners=2, frames=2, late=1, retries=2, releases=0, rotations=2, deletion=False),
    Bounds(owners=2, frames=3, late=1, retries=1, releases=0, rotations=1),
    Bounds(owners=2, frames=3, late=1, retries=0, releases=1, rotations=1),
    Bounds(owners=3, frames=1, late=1, retries=0, releases=0, rotations=0),
)


def described(bounds: Bounds) -> str:
    """Bounds for a reader."""
    shown = [name for name in bounds._fields if name not in ("late_after_end", "crashes", "clocks")]
    return ", ".join(f"{name} {getattr(bounds, name):d}" for name in shown)


def main(arguments: list[str] | None = None) -> int:
    """Explore; the exit status is 1 if something is violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.model", description=__doc__)
    parser.add_argument("--large", action="store_true", help="larger bounds; takes many minutes")
    parser.add_argument("--bug", choices=[*PLANTED, "all"], help="plant this bug, and print the shortest trace")
    chosen = parser.parse_args(arguments)
    failed = False
    if chosen.bug:
        for name in PLANTED if chosen.bug == "all" else [chosen.bug]:
            found = explore(PLANTED[name].bounds, frozenset({name}), liveness=name in LIVENESS)
            print(f"{name}: {PLANTED[name].text}\n  {found.states:,} states, {found.seconds:.1f} s")
            print("\n".join(lines(found)), flush=True)
            failed = failed or not found.violation
        return int(failed)
    for bounds in LARGE if chosen.large else ORDINARY:
        found = explore(bounds)
        print(f"{described(bounds)}: {found.states:,} states, {found.transitions:,} steps, "
              f"depth {found.depth}, {found.seconds:.0f} s", flush=True)  # fmt: skip
        if found.violation:
            print("\n".join(lines(found)))
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
