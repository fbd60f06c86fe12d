"""Frames that were seen before, run as straight lines: captured from the tape, guarded, and the same to the last bit.

Nothing here is part of a session's state: with plans and without them, a session holds and answers the same.
"""

from typing import Final

from .cache import Plans

OFF, ON, SHADOW = range(3)
MODES: Final = {"off": OFF, "on": ON, "shadow": SHADOW}
"""By the name of a setting. The last is for tests: each frame runs on the tape and by a plan, and the two are compared.
"""


def plans_of(mode: int) -> Plans | None:
    """The plans of a new session."""
    if mode == SHADOW:
        from .shadow import ShadowPlans

        return ShadowPlans()
    return Plans() if mode == ON else None


__all__ = ["MODES", "OFF", "ON", "SHADOW", "Plans", "plans_of"]
