"""The fast path for records that only tell the server something: that a gradient is gone, that backward runs, a step.

As :mod:`.fast_path` does it, and under the same conditions, for records of which nothing comes, or what the
server has already. Those that join a frame that is due to end take it also then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..context.biased_lock import NOBODY
from ..context.call_sites import user_line
from ..context.modes import MODES

if TYPE_CHECKING:
    from ..session.session import Session
    from ..tensor.tensor import Tensor
    from .signatures import Signature


def tell(x: Tensor, name: str, more: list[Any], listed: bool = False) -> bool:
    """Record an op of one tensor, which is its first argument or alone in that (``listed``); ``more`` is how the others
    are written. Returns whether that could be done."""
    session = x._session
    builder = session.builder
    lock = builder.lock
    key = MODES.key
    if lock.ready != key:
        return False
    args: list[Any] = [[0] if listed else 0, *more]
    records = [[name, args]]
    line = user_line()
    if lock.ready != key:
        return False
    lock.busy = True
    try:
        number = x._id
        if lock.ready != key or len(builder.records) >= builder.limit or number < 0:
            lock.busy = False
            return False
        at: Any = number - builder.first
        if at < 0:
            table = builder.external
            known = table.get(number)
            if known is None:
                known = table[number] = len(table)
            at = -1 - known
        if listed:
            args[0][0] = at
        else:
            args[0] = at
        first = builder.append(records, [line], [], 0)
    except BaseException:
        lock.broken = True
        lock.ready = lock.joins = NOBODY
        lock.busy = False
        raise
    if first < 0:
        return False
    builder.changes += 1
    return True


def record_control(signature: Signature, session: Session, values: list[Any], key: int) -> int:
    """Record a call of a known form. Returns the id of what comes of it, or of what will be made next; below 0 where
    nothing was recorded."""
    builder = session.builder
    lock = builder.lock
    joins = signature.joins
    if (lock.joins if joins else lock.ready) != key:
        return -1
    args = signature.template.copy()
    records = [[signature.name, args]]
    numbers = [values[i] for i in signature.numbers]
    line = user_line()
    if (lock.joins if joins else lock.ready) != key:
        return -1
    lock.busy = True
    try:
        if (lock.joins if joins else lock.ready) != key or len(builder.records) >= builder.limit:
            lock.busy = False
            return -1
        for i in signature.references:
            if values[i]._session is not session or values[i]._id < 0:
                lock.busy = False
                return -1
        for i in signature.lists:
            for x in values[i]:
                if x is not None and (x._session is not session or x._id < 0):
                    lock.busy = False
                    return -1
        for i in signature.references:
            args[i] = builder.reference(values[i])
        for i in signature.lists:
            args[i] = builder.references(values[i])
        first = builder.append(records, [line], numbers, 0 if signature.out is None else 1)
    except BaseException:
        lock.broken = True
        lock.ready = lock.joins = NOBODY
        lock.busy = False
        raise
    if first >= 0:
        builder.changes += 1
    return first
