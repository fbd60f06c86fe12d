"""Sessions that verify their plans: each frame runs on the tape and by a plan, and the two are compared."""

from gradwire_engine.session import session as sessions
from gradwire_server.workers import pool

from .plans import ShadowPlans

ALIKE = ("-m", __name__)
"""What goes before a module's name, so that it runs with such sessions."""


def shadow_sessions() -> None:
    """Let sessions of this process, and of the workers that it starts, have these plans."""
    vars(sessions)["Plans"] = ShadowPlans
    vars(pool)["PROGRAM"] = (*ALIKE, "gradwire_server.workers")
