"""The short way to record what only tells the server something: that a gradient is gone, that backward runs, a step.

As :mod:`gradwire.short_way` does it, and under the same conditions, for records of which nothing comes, or what the
server has already. Those that join a frame that is due to end take it also then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .lines import user_line
from .modes import MODES
from .turns import NOBODY

if TYPE_CHECKING:
    from .forms import Short
    from .session import Session
    from .tensor import Tensor


def tell(x: Tensor, name: str, more: list[Any], listed: bool = False) -> bool:
    """Record an op of one tensor, which is its first argument or alone in that (``listed``); ``more`` is how the others
    are written. Returns whether that could be done."""
    session = x._session
    turns = session.lock
    key = MODES.key
    if turns.ready != key:
        return False
    args: list[Any] = [[0] if listed else 0, *more]
    record = [name, args]
    line = user_line()
    if turns.ready != key:
        return False
    turns.busy = True
    try:
        number = x._id
        if turns.ready != key or len(session._ops) >= session._limit or number < 0:
            turns.busy = False
            return False
        at: Any = number - session._first
        if at < 0:
            table = session._external
            known = table.get(number)
            if known is None:
                known = table[number] = len(table)
            at = -1 - known
        if listed:
            args[0][0] = at
        else:
            args[0] = at
        if not turns.busy:
            return False
        session.changes += 1
        session._ops.append(record)
        session._lines.append(line)
    except BaseException:
        turns.broken = True
        turns.ready = turns.joins = NOBODY
        turns.busy = False
        raise
    turns.busy = False
    if not session._watched:
        session.stir()
    return True


def told(short: Short, session: Session, values: list[Any], key: int) -> int:
    """Record a call of a known form. Returns the id of what comes of it, or of what will be made next; below 0 where
    nothing was recorded."""
    turns = session.lock
    joins = short.joins
    if (turns.joins if joins else turns.ready) != key:
        return -1
    args = short.template.copy()
    record = [short.name, args]
    numbers = [values[i] for i in short.numbers]
    line = user_line()
    if (turns.joins if joins else turns.ready) != key:
        return -1
    turns.busy = True
    try:
        if (turns.joins if joins else turns.ready) != key or len(session._ops) >= session._limit:
            turns.busy = False
            return -1
        for i in short.references:
            if values[i]._session is not session or values[i]._id < 0:
                turns.busy = False
                return -1
        for i in short.lists:
            for x in values[i]:
                if x is not None and (x._session is not session or x._id < 0):
                    turns.busy = False
                    return -1
        for i in short.references:
            args[i] = session._ref(values[i])
        for i in short.lists:
            args[i] = session._refs(values[i])
        if not turns.busy:
            return -1
        session._scalars += numbers
        session.changes += 1
        session._ops.append(record)
        session._lines.append(line)
        number = session._next_id
        if short.out is not None:
            session._next_id = number + 1
    except BaseException:
        turns.broken = True
        turns.ready = turns.joins = NOBODY
        turns.busy = False
        raise
    turns.busy = False
    if not session._watched:
        session.stir()
    return number
