"""A process that finds this on its path speaks the next version of the protocol, and the present one."""

from gradwire_protocol import frames

frames.MIN_PROTOCOL_VERSION = frames.PROTOCOL_VERSION  # type: ignore[misc]
frames.PROTOCOL_VERSION += 1  # type: ignore[misc]
