"""How far uploads have come, and what a frame under way computes: facts of long waits."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Final

import msgspec

from ..context.waiting import Facts, Kind
from .send_window import SendWindow, SentFrame

APART_S: Final = 1.0
"""Uploads of which one begins this soon after another are one transfer: the tensors of a model."""


class Transfers:
    """The uploads of one link.

    Attributes:
        began: when the transfer began (``monotonic``).
        done: bytes of it that were written.
    """

    def __init__(self) -> None:
        self.began = 0.0
        self.done = 0
        self._given = 0
        self._frames = 0
        self._until = 0.0
        self._sending = False

    def begin(self, nbytes: int) -> None:
        """So many bytes are sent now."""
        now = monotonic()
        if now > self._until + APART_S:
            self.began, self.done, self._given, self._frames = now, 0, 0, 0
        self._given += nbytes
        self._frames += 1
        self._sending = True

    def moved(self, nbytes: int) -> None:
        """So many of them were written."""
        self.done += nbytes

    def pause(self) -> None:
        """They are written, or not to be written on this connection any more."""
        self._sending = False
        self._until = monotonic()

    def facts(self) -> Facts | None:
        """How far the transfer has come; ``None`` if nothing is being uploaded. Any thread may ask."""
        if not self._sending:
            return None
        total = self._given if self._frames == 1 else None  # nobody knows how many frames will follow
        done = self.done if total is None else min(self.done, total)
        return Facts("upload", done=done, total=total, began=self.began)


def frame_facts(window: SendWindow, kind: Kind = "read") -> Facts:
    """What the server computes: the oldest unanswered frame. Any thread may ask."""
    first, frames = window.first, len(window)
    if first is None:
        return Facts(kind)
    lines = first.lines
    return Facts(kind, op=_last_op(first), line=lines[-1] if lines else None, ops=len(lines), frames=frames)


def _last_op(sent: SentFrame) -> str:
    with suppress(msgspec.MsgspecError, KeyError, IndexError, TypeError):
        return str(msgspec.msgpack.decode(sent.structure)["ops"][-1][0])
    return ""
