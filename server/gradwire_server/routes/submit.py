"""Submits the frame of a REST call."""

from __future__ import annotations

import time

from gradwire_protocol.errors import NotFound, TooManyRequests
from gradwire_protocol.frames import Reply

from ..auth.audit import caller
from ..errors.error_mapping import from_problem
from ..hosting.jobs import Buffers
from ..http.shortcut_frames import BuiltFrame
from ..http.state import Server
from ..sessions.session import Session
from ..settings.settings import variable


async def submit(server: Server, session: Session, built: BuiltFrame) -> tuple[Reply, Buffers]:
    """Submit a frame and wait for its reply.

    Raises:
        TooManyRequests: when too many frames are queued, or the key exceeds its rate of ops.
        Unavailable: when the server is stopping.
        SessionGone: when the session was deleted.
    """
    most = server.settings.max_pending_frames
    if session.host.pending >= most:
        raise TooManyRequests(
            f"the session has {session.host.pending} queued frames; the limit is {most} "
            f"({variable('max_pending_frames')}); retry later",
            setting=variable("max_pending_frames"), limit=most,
        )  # fmt: skip
    if (who := caller.get()) is not None:
        server.access.rates.charge_ops(who.key, built.frame, built.human)
    tracing, received = server.tracing, time.perf_counter_ns()
    if tracing is not None:
        built.frame.timed = True
    try:
        reply, out = await session.host.apply(built.frame, built.buffers, built.human)
    finally:
        session.touch()
    if tracing is not None:
        size = len(bytes(built.frame.structure)) + sum(b.nbytes for b in built.buffers)
        sent = sum(b.nbytes for b in out)
        tracing.frame(tracing.current(), session.id, built.frame, built.human, received, size, sent, reply)
    return reply, out


def succeed(reply: Reply) -> Reply:
    """The reply of a frame without errors.

    Raises:
        GradwireError: the refusal of the frame, or its first error.
    """
    if reply.refused is not None:
        raise from_problem(reply.refused)
    if reply.errors:
        raise from_problem(reply.errors[0])
    return reply


def undefined(tensor: int | str) -> NotFound:
    """The error for reading an undefined tensor, that is, a missing gradient."""
    return NotFound(f"tensor {tensor!r} is undefined: it is a missing gradient")
