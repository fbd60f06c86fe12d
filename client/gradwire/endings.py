"""What a program is told when its session is gone or out of reach: which of its frames are applied, and which are not
known to be."""

from __future__ import annotations

from typing import Final

from gradwire_protocol.errors import ConnectionLost, GradwireError, SessionGone, Superseded

from .window import Window

FINAL: Final = (SessionGone, Superseded)
"""After these nothing can be done in the session any more."""


def explain(error: GradwireError, session: str, client: int, window: Window, began: bool) -> None:
    """Add to an error of :data:`FINAL` what it means for the frames of a program. ``began`` is whether it ever
    had a connection."""
    if isinstance(error, Superseded):
        error.args = (_superseded(error.message, session, client, window),)
    elif began:
        error.args = (_gone(error.message, session, window),)
    error.details |= window.facts()


def _superseded(cause: str, session: str, client: int, window: Window) -> str:
    """Another program has this one's place."""
    return (
        f"another program took the place of client {client} in session {session}, and this one is done there: its "
        f"frames up to {window.answered} are applied{_doubt(window, 'applied ')} ({cause})"
    )


def _gone(cause: str, session: str, window: Window) -> str:
    """The session has ended."""
    return (
        f"session {session} is gone, with all that was in it: {cause}. Frames up to {window.answered} were "
        f"acknowledged{_doubt(window, 'applied ')}"
    )


def out_of_reach(cause: object, url: str, seconds: float, window: Window) -> ConnectionLost:
    """Patience has ended before the server could be reached."""
    return ConnectionLost(
        f"{url} could not be reached for {seconds:g} s ({cause}); frames up to {window.answered} are "
        f"applied{_doubt(window)}. Nothing is lost by it: the next use tries again and resumes",
        **window.facts(),
    )


def _doubt(window: Window, applied: str = "") -> str:
    return f"; {window.describe()} may have been {applied}or not" if window else ""
