"""URLs of servers: what they look like, and what to do where none answers."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from gradwire_protocol.errors import ArgumentValueError

STREAMS: Final = {"ws": "http", "wss": "https"}
"""Schemes of streams, and those of the servers that have them."""

DEFAULT_PORT: Final = 8000


def check_url(url: str) -> str:
    """The URL of a server as it is used: without blanks around it.

    Raises:
        ArgumentValueError: when it is not ``http://`` or ``https://`` with a host.
    """
    given, url = url, url.strip()
    scheme, found, rest = url.partition("://")
    scheme = scheme.lower()
    if found and scheme in STREAMS:
        raise ArgumentValueError(
            f"{given!r:.200} is the address of a WebSocket; give the server's URL, {STREAMS[scheme]}://{rest:.180}: "
            "gradwire finds the stream"
        )
    if not found:
        raise ArgumentValueError(
            f"{given!r:.200} is not a server URL: it must begin with http:// or https:// (http://{url:.180}?)"
        )
    if scheme not in STREAMS.values():
        raise ArgumentValueError(f"{given!r:.200} is not a server URL: it must begin with http:// or https://")
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname)
        _ = parts.port
    except ValueError as error:
        raise ArgumentValueError(f"{given!r:.200} is not a server URL: {error}") from None
    if not named:
        raise ArgumentValueError(f"{given!r:.200} is not a server URL: a host must follow http:// or https://")
    return url


def what_to_set(url: str) -> str:
    """What to do where no server answers at a URL that is one."""
    parts = urlsplit(url)
    begin = "gradwire serve" if parts.port in (None, DEFAULT_PORT) else f"gradwire serve --port {parts.port}"
    where = "" if parts.hostname in ("127.0.0.1", "localhost", "::1") else " on that machine"
    return f". Start a server with '{begin}'{where}, or set GRADWIRE_URL (or url=) to the address of one that runs"
