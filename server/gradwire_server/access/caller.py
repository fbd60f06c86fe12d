"""Who a request or a stream comes from, as the layers behind the entrance know it."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from .keys import Key


@dataclass(frozen=True, slots=True)
class Caller:
    """The key that was presented, and where from.

    Attributes:
        ticket: it came as a one-time ticket of this key.
    """

    key: Key
    address: str
    request_id: str
    ticket: bool = False


def caller_of(connection: HTTPConnection) -> Caller:
    """Who this request or stream comes from."""
    caller: Caller = connection.state.caller
    return caller
