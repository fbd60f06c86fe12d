"""How a REST call becomes a frame's reply."""

from __future__ import annotations

import time

from gradwire_protocol.errors import NotFound, TooManyRequests
from gradwire_protocol.frames import Reply

from ..access.audit import caller
from ..framebuild import Built
from ..jobs import Buffers
from ..refusals import from_problem
from ..sessions import Session
from ..settings import variable
from ..state import Server


async def submit(server: Server, session: Session, built: Built) -> tuple[Reply, Buffers]:
    """Submit a frame and wait for its reply.

    Raises:
        TooManyRequests: when too many wait already, or the key has not paid yet for the ops that it had run.
        Unavailable: when the server is stopping.
        SessionGone: when the session was deleted.
    """
    most = server.settings.max_pending_frames
    if session.host.pending >= most:
        raise TooManyRequests(
            f"{session.host.pending} frames of this session wait to run ({variable('max_pending_frames')})",
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
    """The reply, if nothing in its frame failed.

    Raises:
        GradwireError: the refusal of the frame, or the first thing in it that failed.
    """
    if reply.refused is not None:
        raise from_problem(reply.refused)
    if reply.errors:
        raise from_problem(reply.errors[0])
    return reply


def undefined(tensor_id: int) -> NotFound:
    """The error of reading a tensor that is known to be no tensor: a gradient that is not there."""
    return NotFound(f"tensor {tensor_id} is undefined: a gradient that is not there")
