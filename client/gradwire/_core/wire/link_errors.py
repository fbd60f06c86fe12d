"""Errors for a session that is gone or out of reach: they state which frames are applied and which may not be."""

from __future__ import annotations

from typing import Final

from gradwire_protocol.errors import ConnectionLost, GradwireError, SessionGone, Superseded

from .send_window import SendWindow

FINAL: Final = (SessionGone, Superseded)
"""After these errors the program cannot use the session any more."""


def explain(error: GradwireError, session: str, client: int, window: SendWindow, began: bool) -> None:
    """Add to an error of :data:`FINAL` the state of the program's frames. ``began``: whether there ever was a
    connection."""
    if isinstance(error, Superseded):
        error.args = (_superseded(error.message, session, client, window),)
    elif began:
        error.args = (_gone(error.message, session, window),)
    error.details |= window.facts()


def _superseded(cause: str, session: str, client: int, window: SendWindow) -> str:
    """Another program has taken over this client."""
    return (
        f"another program took the place of client {client} in session {session}; this program can no longer use it. "
        f"Its frames up to {window.answered} are applied{_doubt(window, 'applied ')} ({cause})"
    )


def _gone(cause: str, session: str, window: SendWindow) -> str:
    """The session has ended."""
    return (
        f"session {session} is gone, with all its state: {cause}. Frames up to {window.answered} were "
        f"acknowledged{_doubt(window, 'applied ')}"
    )


def out_of_reach(cause: object, url: str, seconds: float, window: SendWindow) -> ConnectionLost:
    """The error when the server could not be reached within the retry time."""
    return ConnectionLost(
        f"{url} could not be reached for {seconds:g} s ({cause}); frames up to {window.answered} are "
        f"applied{_doubt(window)}. Nothing is lost: the next use reconnects and resumes",
        **window.facts(),
    )


def _doubt(window: SendWindow, applied: str = "") -> str:
    return f"; {window.describe()} may have been {applied}or not" if window else ""
