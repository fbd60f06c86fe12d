"""What the line says of a wait: the words for each kind of facts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from ..context.call_sites import place_of
from ..context.waiting import Wait
from ..session.round_trips import SPELLED

CAUSE_CHARACTERS: Final = 60
MEASURED_S: Final = 0.5
"""A rate is told after this long."""

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
DOES: Final = {
    "waking": "the server replays the session's journal", "compiling": "the server compiles kernels",
}  # fmt: skip
"""What the server says that it does, if that is why one waits."""


def words(wait: Wait, now: float) -> str:
    """The line for a wait."""
    return WORDS[wait.facts().kind](wait, now)


def size(nbytes: float) -> str:
    """Bytes as people read them: ``1.5 GB``."""
    unit = 0
    while nbytes >= 1000 and unit < len(_UNITS) - 1:
        nbytes, unit = nbytes / 1000, unit + 1
    return f"{nbytes:.0f} {_UNITS[unit]}" if unit < 2 or nbytes >= 100 else f"{nbytes:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """``96 s``, ``3 min 5 s``, ``2 h 10 min``."""
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _site(wait: Wait) -> tuple[str, str, int]:
    """What waits, and the name of its file and its line."""
    if wait.site is None:
        return "the program", "", 0
    code, instruction, name = wait.site
    file, number, _ = place_of((code, instruction))
    return SPELLED.get(name, f"{name}()"), os.path.basename(file), number


def _read(wait: Wait, now: float) -> str:
    facts, (name, file, number) = wait.facts(), _site(wait)
    said = f"{name} waits {duration(now - wait.began)} at {file}:{number}"
    if wait.answer in DOES:
        said += f": {DOES[wait.answer]}"
    elif facts.op and facts.ops:
        said += f" for {facts.op}" if facts.ops == 1 else f" for {facts.ops:,} ops up to {facts.op}"
        if facts.line is not None:
            where, at, _ = place_of(facts.line)
            if os.path.basename(where) != file:
                said += f" at {os.path.basename(where)}:{at}"
            elif at != number:
                said += f" of line {at}"
    return said + (" · Ctrl-C cancels" if wait.in_main else "")


def _room(wait: Wait, now: float) -> str:
    facts, (_, file, number) = wait.facts(), _site(wait)
    said = f"{file}:{number} waits {duration(now - wait.began)}: the server has {facts.frames:,} frames to compute"
    return said + (" · Ctrl-C cancels" if wait.in_main else "")


def _moved(verb: str) -> Callable[[Wait, float], str]:
    def moved(wait: Wait, now: float) -> str:
        facts = wait.facts()
        passed = now - facts.began
        said = f"{verb} {size(facts.done)}" + ("" if facts.total is None else f" of {size(facts.total)}")
        if passed < MEASURED_S or not facts.done:
            return said
        rate = facts.done / passed
        said += f", {size(rate)}/s"
        if facts.total is not None:
            said += f", {duration((facts.total - facts.done) / rate)} left"
        return said

    return moved


def _connection(wait: Wait, now: float) -> str:
    facts = wait.facts()
    left = f"{duration(facts.left)} left"
    if facts.again_at:
        again = f"trying again in {max(round(facts.again_at - now), 0)} s, {left}"
    else:
        again = f"trying, {left}"
    return f"no connection to {facts.url}: {again} ({_short(facts.cause)})"


def _short(cause: str) -> str:
    """The end of a cause: it begins with the address, as a rule."""
    cause = cause.rpartition("] ")[2] if "[Errno" in cause else cause
    return cause if len(cause) <= CAUSE_CHARACTERS else "…" + cause[-CAUSE_CHARACTERS:]


def _server(wait: Wait, now: float) -> str:
    return f"the embedded server starts, {duration(now - wait.began)}"


def _session(wait: Wait, now: float) -> str:
    does = DOES.get(wait.answer, f"waiting for the session at {wait.facts().url}")
    return f"{does}, {duration(now - wait.began)}"


WORDS: Final[dict[str, Callable[[Wait, float], str]]] = {
    "read": _read, "room": _room, "upload": _moved("sending"), "download": _moved("receiving"),
    "connection": _connection, "server": _server, "session": _session,
}  # fmt: skip
