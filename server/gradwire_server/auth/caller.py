"""The caller of a request or a stream."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from .keys import Key
from .sign_ins import SignIn


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated key and where it came from.

    Attributes:
        ticket: the caller presented a ticket of this key instead of the key.
        sign_in: the sign-in of the console that the caller presented instead of the key.
        session: the only session that the caller's pass is for; empty for a caller without one.
    """

    key: Key
    address: str
    request_id: str
    ticket: bool = False
    session: str = ""
    sign_in: SignIn | None = None


def caller_of(connection: HTTPConnection) -> Caller:
    """The caller of this request or stream."""
    caller: Caller = connection.state.caller
    return caller
