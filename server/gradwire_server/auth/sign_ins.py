"""Sign-ins of the console: cookies that stand for a key.

A sign-in is 256 random bits in a cookie that scripts cannot read. The server keeps its hash, in memory, with the key.
It ends with the key, after a time, at sign-out, and with the server. Another site cannot use it: the browser sends the
cookie with requests of the same site only (SameSite=Strict), and :func:`check_same_origin` refuses those of another
port of the same host, which a browser takes for the same site.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from gradwire_protocol.errors import Forbidden

from ..settings.settings import Settings, digest_of
from .keys import Key

COOKIE: Final = "gradwire_console"
HEADER: Final = "X-Gradwire-Console"
"""What requests that change something must have beside the cookie. Another origin's page cannot send it."""

MOST: Final = 10_000
PER_TENANT: Final = 100
SAFE: Final = frozenset({"GET", "HEAD"})

EndStream = Callable[[str], None]


@dataclass(eq=False)
class SignIn:
    """A sign-in.

    Attributes:
        expires: by the monotonic clock.
        ends: ends its open streams.
    """

    digest: str
    key: Key
    expires: float
    ends: set[EndStream] = field(default_factory=set)


class SignIns:
    """The sign-ins of a server."""

    def __init__(self, settings: Settings) -> None:
        self._lasts_s = settings.console_sign_in_s
        self._open: OrderedDict[str, SignIn] = OrderedDict()
        """By digest, in order of expiry."""

    def begin(self, key: Key) -> tuple[str, float]:
        """Sign in. Returns the text of the cookie and its lifetime in seconds. The tenant's oldest sign-in may end."""
        now = time.monotonic()
        while self._open and next(iter(self._open.values())).expires <= now:
            self._drop(next(iter(self._open)), "the sign-in has expired")
        mine = [each for each in self._open.values() if each.key.tenant == key.tenant]
        if len(mine) >= PER_TENANT:
            self._drop(mine[0].digest, "there were too many other sign-ins")
        if len(self._open) >= MOST:
            self._drop(next(iter(self._open)), "there were too many other sign-ins")
        text = secrets.token_urlsafe(32)
        digest = digest_of(text)
        lasts = self._lasts_s
        if key.expires is not None:
            lasts = min(lasts, max(1.0, key.expires - time.time()))
        self._open[digest] = SignIn(digest, key, now + lasts)
        return text, lasts

    def find(self, text: str) -> SignIn | None:
        """The sign-in of a cookie; ``None`` if there is none, or it is over."""
        found = self._open.get(digest_of(text))
        return found if found is not None and found.expires > time.monotonic() else None

    def end(self, sign_in: SignIn) -> None:
        """Sign out; its streams end."""
        self._drop(sign_in.digest, "signed out")

    def _drop(self, digest: str, reason: str) -> None:
        found = self._open.pop(digest, None)
        for end in list(found.ends) if found is not None else ():
            end(reason)

    @contextmanager
    def watched(self, sign_in: SignIn | None, end: EndStream) -> Iterator[None]:
        """Register a stream while it is open, to end it with its sign-in."""
        if sign_in is None:
            yield
            return
        sign_in.ends.add(end)
        left = max(0.0, sign_in.expires - time.monotonic())
        timer = asyncio.get_running_loop().call_later(left, end, "the sign-in has expired")
        try:
            yield
        finally:
            timer.cancel()
            sign_in.ends.discard(end)


def cookie_of(headers: Headers) -> str | None:
    """The sign-in cookie of a request."""
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE and value:
            return value
    return None


def check_same_origin(method: str, headers: Headers) -> None:
    """Check that a request with the cookie is one of the console's own.

    Raises:
        Forbidden: when another origin's page sent it, or it changes something without the console's header.
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        raise Forbidden("a request with the console's cookie must come from the console's own page", site=site)
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise Forbidden("a request with the console's cookie must come from the console's own page", origin=origin)
    if method not in SAFE and HEADER.lower() not in headers:
        raise Forbidden(
            f"a request with the console's cookie that changes something must have the header {HEADER}; send a key "
            "in a header instead of the cookie",
            header=HEADER,
        )
