"""A session goes to another of its states, and its clients stay where they are.

Clients count their frames and ids upwards, whatever the session does. So what belongs to the conversation with them
(frame numbers, epochs, kept replies, unfinished uploads, known structures) is that of the present, and all else that of
the image: memory, graph, gradients, names, random state, default dtype.
"""

from __future__ import annotations

from gradwire_protocol.errors import UnknownTensor
from gradwire_protocol.frames import Problem

from ..autograd.failures import Poison
from ..runtime.backends import Backends
from ..runtime.memory import Limits
from ..session.session import Session
from .facts import Image
from .restoring import restore


def rewound(present: Session, image: Image, limits: Limits, why: str, backends: Backends | None = None) -> Session:
    """The session in the state of an earlier image, in place of ``present``, which does not change.

    Of the image's tensors those keep an id that have one now: the others were released by their clients since. Ids that
    the image does not have are poisoned. The rewind counts as a frame.

    Args:
        why: what is said of a tensor that the image does not have, after "it ".
    """
    past = restore(image, limits, backends)
    known = past.ids
    past.ids = {number: known[number] if number in known else _missing(number, why) for number in present.ids}
    _go_on(past, present)
    past.frames_applied = present.frames_applied + 1
    return past


def revisited(present: Session, image: Image, limits: Limits, why: str, backends: Backends | None = None) -> Session:
    """Another state of a session that is only looked at, in place of ``present``, with all tensors of the image. What
    the visitors made is poisoned."""
    past = restore(image, limits, backends)
    for number in present.ids:
        if number not in past.ids:
            past.ids[number] = _missing(number, why)
    arrived = {number: client for number, client in past.clients.items() if number not in present.clients}
    frames = past.frames_applied
    _go_on(past, present)
    past.clients |= arrived
    past.frames_applied = frames
    return past


def _missing(number: int, why: str) -> Poison:
    return Poison(Problem(code=UnknownTensor.code, detail=f"tensor {number} does not exist: it {why}"))


def _go_on(past: Session, present: Session) -> None:
    """Give a restored session what belongs to the conversation with its clients."""
    past.clients, past.uploads, past.structures = present.clients, present.uploads, present.structures
    for client in past.clients.values():
        client.failed_backward = None
        client.failed_writes = []
    past.ops_run = present.ops_run
    past.engine.compiled = present.engine.compiled
    past.engine._seq = max(past.engine._seq, present.engine._seq)
