"""How a link gets a connection: at the server's URL, and from there, if that is a gateway, at the session's worker.

Each attempt starts at the gateway, because the session may have moved. The gateway answers the hello with a redirect:
the worker's address and a ticket that opens one stream there. The API key goes to the gateway only.

If the worker's address does not answer within seconds, the link goes on through the gateway, which relays streams of
clients that do not offer to follow redirects, and tries the direct way again after some minutes. A worker that answers
and refuses (the ticket is too old, the session has moved) is no reason for that: the gateway is asked again.
"""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from gradwire_protocol.errors import (
    ArgumentValueError,
    MalformedFrame,
    NotFound,
    SessionGone,
    Unauthorized,
    Unavailable,
    VersionMismatch,
)
from gradwire_protocol.frames import MIN_PROTOCOL_VERSION, PROTOCOL_VERSION, REDIRECT, Hello, Redirect

from ..context.waiting import Wait
from .connection import ATTEMPT_S, CONNECT_TIMEOUT_S, HANDSHAKE_TIMEOUT_S, Connection, Disconnected

VARIABLE: Final = "GRADWIRE_DIRECT"
PLAIN: Final = "plain"
"""The variable's value that allows redirects from https:// to http://."""

PROBE_S: Final = 3.0
"""How long a worker's address may take to accept a connection, TLS included."""
UPGRADE_S: Final = 10.0
"""How long the worker may take to answer the handshake: it may have to take the session over first."""
REDIRECTS_AT_MOST: Final = 3
"""Redirects that one attempt follows. A gateway that knows less than its workers might never stop."""
AVOIDED_S: Final = 300.0
"""How long the direct way is avoided after its address did not answer."""
FRUITLESS_AT_MOST: Final = 2
"""Direct connections in a row that broke before any waiting frame was answered, or whose worker was not ready, after
which the way is avoided: it may carry handshakes, and nothing larger."""
DIAL_S: Final = ATTEMPT_S + REDIRECTS_AT_MOST * (PROBE_S + UPGRADE_S) + ATTEMPT_S
"""The longest that an attempt takes when nobody answers."""

_ELSEWHERE: Final = (Unauthorized, SessionGone, NotFound)
"""What a worker answers to a ticket that is too old or was used, or for a session that has moved. Whether the key is
valid and the session exists, the gateway knows."""


def wants_direct(given: bool | None) -> tuple[bool, bool]:
    """Whether redirects are followed, and whether those from https:// to http:// are: the argument, else the
    environment variable, else yes and no.

    Raises:
        ArgumentValueError: for another value of the variable.
    """
    text = os.environ.get(VARIABLE, "").strip().lower()
    if text not in ("", "0", "false", "no", "off", "1", "true", "yes", "on", PLAIN):
        raise ArgumentValueError(f"{VARIABLE}={text!r:.40} is none of 1, 0 and {PLAIN}")
    wanted = text not in ("0", "false", "no", "off")
    return (wanted if given is None else given), text == PLAIN


class Dialer:
    """Opens the connections of one link.

    Args:
        url, session, key: the server or gateway, the session's id and the API key.
        heartbeat, spin: of the connections.
        direct: whether to follow redirects; default: what ``GRADWIRE_DIRECT`` says, else yes.

    Attributes:
        redirects: how many redirects were followed.
        fallbacks: how often the direct way was given up for the gateway's relay.
        wait: the caller's wait for a connection, if somebody looks at it.
    """

    def __init__(
        self, url: str, session: str, key: str | None, heartbeat: float, spin: float, direct: bool | None = None
    ) -> None:
        self.redirects = self.fallbacks = 0
        self.wait: Wait | None = None
        self._url = url
        self._session = session
        self._key = key
        self._heartbeat, self._spin = heartbeat, spin
        self._follows, self._plain = wants_direct(direct)
        self._avoided_until = 0.0
        self._fruitless = 0
        self._version = PROTOCOL_VERSION
        self._last: tuple[int, bool] | None = None
        """Of the last connection, if it was direct: the last reply before it, and whether frames were waiting."""

    def dial(self, hello: Hello, waiting: bool) -> Connection:
        """Connect. ``waiting``: whether frames will be sent at once.

        Raises:
            Disconnected: when another attempt may succeed.
            GradwireError: when the server refuses, or what answers is no gradwire server.
        """
        self._judge_last(hello.acked)
        for _ in range(REDIRECTS_AT_MOST):
            connection = self._open(self._url, hello, self._offers)
            if connection.redirect is None:
                return connection
            connection.close()
            direct = self._follow(connection.redirect, hello)
            if direct is not None:
                self.redirects += 1
                self._last = hello.acked, waiting
                return direct
        return self._open(self._url, hello, offers=False)

    @property
    def _offers(self) -> bool:
        return self._follows and time.monotonic() >= self._avoided_until

    def _judge_last(self, acked: int) -> None:
        """Learn from how the last connection ended."""
        last, self._last = self._last, None
        if last is None:
            return
        before, waiting = last
        if acked > before:
            self._fruitless = 0
        elif waiting:
            self._count_fruitless()

    def _count_fruitless(self) -> None:
        self._fruitless += 1
        if self._fruitless >= FRUITLESS_AT_MOST:
            self._avoid()

    def _avoid(self) -> None:
        self._fruitless = 0
        self._avoided_until = time.monotonic() + AVOIDED_S
        self.fallbacks += 1

    def _follow(self, redirect: Redirect, hello: Hello) -> Connection | None:
        """Connect to the worker; ``None`` to ask the gateway again.

        Raises:
            Disconnected: when the worker has the session and is not ready.
            GradwireError: when the worker refuses this client.
        """
        if not trusted(self._url, redirect.url, self._plain):
            self._avoid()
            return None
        reached = False

        def answered() -> None:
            nonlocal reached
            reached = True

        try:
            connection = self._open(redirect.url, hello, offers=False, ticket=redirect.ticket, answered=answered)
        except _ELSEWHERE:
            return None
        except VersionMismatch as error:  # the ticket is used up, and the next hello is older
            if not self._older(error):
                raise
            return None
        except Disconnected:
            if reached:  # it is starting, stopping or recovering
                self._count_fruitless()
                raise
            self._avoid()
            return None
        except (Unavailable, MalformedFrame) as error:
            if "code" in error.details:  # reported by the worker
                raise
            self._avoid()  # an untrusted certificate, or something else that answers there
            return None
        connection.direct = True
        return connection

    def _open(
        self, url: str, hello: Hello, offers: bool, ticket: str = "", answered: Callable[[], None] = lambda: None
    ) -> Connection:
        hello.capabilities = [REDIRECT] if offers else []
        hello.version = self._version
        if self.wait is not None:
            self.wait.greeted = False
        key, limits = self._key, (CONNECT_TIMEOUT_S, HANDSHAKE_TIMEOUT_S)
        if ticket:
            key, limits = None, (PROBE_S, UPGRADE_S)
        try:
            found = Connection(
                url, self._session, key, hello, self._heartbeat, self._spin, ticket=ticket, limits=limits,
                answered=answered, trust=self._url, wait=self.wait,
            )  # fmt: skip
        except VersionMismatch as error:
            if ticket or not self._older(error):
                raise
            return self._open(url, hello, offers)
        if found.redirect is not None and not offers:
            found.drop()
            raise MalformedFrame("the server redirects a client that does not follow redirects")
        return found

    def _older(self, error: VersionMismatch) -> bool:
        """Speak the server's older version from now on, if this client does."""
        theirs = error.details.get("server")
        if not isinstance(theirs, int) or not MIN_PROTOCOL_VERSION <= theirs < self._version:
            return False
        self._version = theirs
        return True


def trusted(gateway: str, worker: str, plain: bool) -> bool:
    """Whether a redirect may be followed: it must be a URL of a server, and not give up the gateway's encryption,
    except on this machine or where ``plain`` allows it."""
    try:
        parts = urlsplit(worker)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.query or parts.fragment:
        return False
    return parts.scheme == "https" or urlsplit(gateway).scheme != "https" or plain or _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
