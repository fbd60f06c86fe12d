"""Sessions go from one server to another. Clients connect again and go on; groups wait for their rank."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from gradwire_engine.snapshot import NotImageable
from gradwire_protocol.errors import Unavailable

from ..hosting.jobs import MOVING
from ..settings.session_spec import SessionSpec
from .session import Session

if TYPE_CHECKING:
    from .sessions import SessionRegistry

COLLECTIVE_PATIENCE_S: Final = 5.0
"""How long a frame may still run whose session is in a group: it may wait for a rank that is moving, too."""

TRANSIENT_S: Final = 10.0
"""How long a session may have transient state that cannot move, like a backward that waits for its client."""

AGAIN_S: Final = 0.5
"""How long such a session may go on before the next attempt."""

Send = Callable[[SessionSpec, bytes | memoryview], Awaitable[None]]

log = structlog.get_logger("gradwire.sessions")


def refusal(session_id: str) -> Unavailable:
    """The refusal of a session that is being handed over."""
    return Unavailable(
        f"session {session_id} is being handed over to another server; connect again", reason=MOVING
    )  # fmt: skip


async def hand_over(registry: SessionRegistry, session_id: str) -> bool:
    """Release a session of the shared storage for another server: finish its running frames, unload it, and have its
    clients reconnect. A frame that waits for other ranks is given up after a while; its client sends it again.
    Returns whether this server had the session.
    """
    session = registry.here(session_id)
    if session is None or session.home is None or session.moving:
        return False
    session.moving = True
    await registry.rendezvous.leaving(session_id)
    session.host.drain()
    patience = registry.settings.drain_timeout_s
    try:
        with suppress(TimeoutError):  # then queued frames are refused, and clients send them again
            most = min(patience, COLLECTIVE_PATIENCE_S) if session.host.grouped else patience
            await asyncio.wait_for(session.host.idle(), most)
        while not await session.host.close(keep=True):
            pass  # close() waits
    finally:
        registry.departed(session)
    log.info("session handed over", session=session_id)
    return True


async def give_away(registry: SessionRegistry, session_id: str, send: Send) -> bool:
    """Move a session that is only in the memory of this server to another one.

    Args:
        send: has the other server take it in; when it raises, that has not.

    Returns:
        Whether this server had it.

    Raises:
        GradwireError: when it has not moved. It goes on here.
    """
    session = registry.here(session_id)
    if session is None or session.folder is not None or session.moving:
        return False
    session.moving, taken = True, False
    await registry.rendezvous.leaving(session_id)
    try:
        image = await _image(session, registry.settings.drain_timeout_s)
        taken = True
        await send(session.spec, image)
    except BaseException as error:
        session.moving = False
        session.host.undrain()
        if taken:
            await registry.rendezvous.recovered(session_id)
        log.warning("a session stays", session=session_id, reason=str(error))
        raise
    registry.departed(session)
    while not await session.host.close(keep=True):
        pass  # close() waits
    log.info("session given away", session=session_id, bytes=len(image))
    return True


async def _image(session: Session, patience_s: float) -> bytes | memoryview:
    """The whole session. Accepts frames no more, unless it raises.

    Raises:
        NotImageable: when it has transient state for too long.
        Unavailable: when a frame does not end.
    """
    deadline = time.monotonic() + min(TRANSIENT_S, patience_s)
    while True:
        session.moving = True
        session.host.drain()
        try:
            await asyncio.wait_for(session.host.idle(), patience_s)
        except TimeoutError:
            raise Unavailable(f"a frame of session {session.id} runs longer than {patience_s:g} s") from None
        try:
            return await session.host.image()
        except NotImageable:
            if time.monotonic() > deadline:
                raise
        session.moving = False
        session.host.undrain()
        await asyncio.sleep(AGAIN_S)
