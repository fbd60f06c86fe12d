"""Single keys from a terminal, without waiting for a line."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NAMES: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b[5~": "pageup", "\x1b[6~": "pagedown",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b": "escape", "k": "up", "j": "down", " ": "space",
}  # fmt: skip
LONGEST: Final = 64


@contextmanager
def single_keys() -> Iterator[bool]:
    """Have keys arrive as they are pressed, without an echo. Yields whether that is possible: not where the input is no
    terminal, or on Windows. Ctrl-C stays an interrupt."""
    try:
        import termios
        import tty
    except ImportError:
        yield False
        return
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError, AttributeError):  # no terminal, closed, or none at all
        yield False
        return
    try:
        tty.setcbreak(descriptor)
        yield True
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def pressed(seconds: float) -> list[str]:
    """The keys that were pressed, after waiting so long for the first: ``q``, or ``up``, ``pagedown``, ... ``eof`` when
    the terminal is gone."""
    descriptor = sys.stdin.fileno()
    readable, _, _ = select.select([descriptor], [], [], seconds)
    if not readable:
        return []
    data = os.read(descriptor, LONGEST)
    if not data:
        return ["eof"]
    return list(split(data.decode(errors="replace")))


def split(text: str) -> Iterator[str]:
    """The keys in what a terminal sent."""
    at = 0
    while at < len(text):
        long = next((each for each in NAMES if len(each) > 1 and text.startswith(each, at)), "")
        if not long and text.startswith(("\x1b[", "\x1bO"), at):  # a key that has no meaning here
            end = at + 2
            while end < len(text) and not ("@" <= text[end] <= "~"):
                end += 1
            at = end + 1
            continue
        key = long or text[at]
        yield NAMES.get(key, key)
        at += len(key)
