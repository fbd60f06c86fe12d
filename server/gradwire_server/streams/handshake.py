"""The beginning of a stream: whether a hello is welcome, and what the welcome says."""

from __future__ import annotations

import time
from typing import Final

from gradwire_protocol.errors import MalformedFrame, TooManyRequests, VersionMismatch
from gradwire_protocol.frames import PROTOCOL_VERSION, Hello, Message, Welcome

from ..sessions import Session
from ..settings import Settings, variable
from ..version import VERSION
from .outgoing import CHUNK_BYTES

CAPABILITIES: Final = ("chunks", "json", "structures", "resume", "cancel")


def checked(message: Message, session: Session, most: int) -> Hello:
    """The hello that opens a stream of a session which may have ``most`` of them.

    Raises:
        MalformedFrame: when it is something else.
        VersionMismatch: when its client speaks another version of the protocol.
        TooManyRequests: when the session has as many streams as it may, of other clients.
    """
    if not isinstance(message, Hello):
        raise MalformedFrame("the first message of a stream must be a hello")
    if message.version != PROTOCOL_VERSION:
        raise VersionMismatch(
            f"the client speaks version {message.version} of the protocol, this server (gradwire {VERSION}) "
            f"speaks version {PROTOCOL_VERSION}: install matching versions of gradwire",
            client=message.version, server=PROTOCOL_VERSION,
        )  # fmt: skip
    if len(session.streams) >= most and message.client not in session.streams:
        raise TooManyRequests(
            f"the session has {most} streams ({variable('max_streams')})",
            setting=variable("max_streams"), limit=most,
        )  # fmt: skip
    return message


def welcome(
    session: Session, settings: Settings, devices: list[str], client: int, expected: int, epoch: int
) -> Welcome:
    """What a client is told that joined."""
    names = ("max_message_bytes", "max_stream_backlog_bytes")
    limits = {name: int(getattr(settings, name)) for name in names} | {"chunk_bytes": CHUNK_BYTES}
    limits |= session.summary()["limits"]
    return Welcome(
        version=PROTOCOL_VERSION, client=client, expected=expected, session=session.id,
        capabilities=list(CAPABILITIES), limits=limits, devices=devices, epoch=epoch,
        durability=session.spec.durability, clock=time.perf_counter_ns(),
    )  # fmt: skip
