"""The handshake of a stream: checking the hello and building the welcome."""

from __future__ import annotations

import time
from typing import Final

from gradwire_protocol.errors import MalformedFrame, TooManyRequests, VersionMismatch
from gradwire_protocol.frames import MIN_PROTOCOL_VERSION, PROTOCOL_VERSION, Hello, Message, Welcome

from ..sessions.session import Session
from ..settings.settings import Settings, variable
from ..settings.version import VERSION
from .sender import CHUNK_BYTES

CAPABILITIES: Final = ("chunks", "json", "structures", "resume", "cancel")

HELLO_PATIENCE_S: Final = 20.0


def check_version(message: Message) -> Hello:
    """Check that a stream's first message is a hello of a version that this server speaks.

    Raises:
        MalformedFrame: when the message is not a hello.
        VersionMismatch: when the client has another protocol version.
    """
    if not isinstance(message, Hello):
        raise MalformedFrame("the first message of a stream must be a hello")
    if not MIN_PROTOCOL_VERSION <= message.version <= PROTOCOL_VERSION:
        oldest, newest = MIN_PROTOCOL_VERSION, PROTOCOL_VERSION
        spoken = f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
        raise VersionMismatch(
            f"the client has protocol version {message.version}, this server (gradwire {VERSION}) has {spoken}; "
            "install matching versions of gradwire",
            client=message.version, server=newest, oldest=oldest,
        )  # fmt: skip
    return message


def check_hello(message: Message, session: Session, most: int) -> Hello:
    """Check the hello of a session that may have ``most`` streams.

    Raises:
        MalformedFrame: when the message is not a hello.
        VersionMismatch: when the client has another protocol version.
        TooManyRequests: when other clients of the session use all its streams.
    """
    hello = check_version(message)
    if len(session.streams) >= most and hello.client not in session.streams:
        raise TooManyRequests(
            f"the session has {most} streams, the maximum ({variable('max_streams')})",
            setting=variable("max_streams"), limit=most,
        )  # fmt: skip
    return hello


def welcome(
    session: Session, settings: Settings, devices: list[str], version: int, client: int, expected: int, epoch: int
) -> Welcome:
    """The welcome for a client that joined with a protocol version."""
    names = ("max_message_bytes", "max_stream_backlog_bytes")
    limits = {name: int(getattr(settings, name)) for name in names} | {"chunk_bytes": CHUNK_BYTES}
    limits |= session.summary()["limits"]
    return Welcome(
        version=version, client=client, expected=expected, session=session.id,
        capabilities=list(CAPABILITIES), limits=limits, devices=devices, epoch=epoch,
        durability=session.spec.durability, clock=time.perf_counter_ns(),
    )  # fmt: skip
