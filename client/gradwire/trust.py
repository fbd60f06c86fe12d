"""Whose certificates are believed: the system's authorities, or the one of a file.

A server inside a company often has a certificate of the company's own authority. Its file is given to ``connect(ca=)``
for one server, or by ``GRADWIRE_CA_FILE`` for all.
"""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from gradwire_protocol.errors import ArgumentError, Unavailable

VARIABLE: Final = "GRADWIRE_CA_FILE"

_files: Final[dict[str, str]] = {}
"""The authority of each server that has one of its own."""


def believe(url: str, ca: str | os.PathLike[str]) -> None:
    """From now on, the server at this URL shows certificates of the authority in this file (PEM).

    Raises:
        ArgumentError: for a file that holds no certificates.
    """
    path = os.fspath(ca)
    _context(path)
    _files[_server(url)] = path


def context(url: str) -> ssl.SSLContext:
    """What a connection to this URL is checked with.

    Raises:
        ArgumentError: when the file that ``GRADWIRE_CA_FILE`` names holds no certificates.
    """
    return _context(_files.get(_server(url)) or os.environ.get(VARIABLE) or None)


def distrusted(url: str, error: ssl.SSLCertVerificationError) -> Unavailable:
    """The error of a certificate that is not believed. It may be a stranger who answers, as in a hotel's network."""
    return Unavailable(
        f"the certificate of {url} is not trusted here: {error.verify_message}. If its authority is one of your own, "
        f"pass its file as connect(ca=...), or name it in {VARIABLE}"
    )


def _server(url: str) -> str:
    return urlsplit(url).netloc.lower()


@lru_cache(maxsize=32)
def _context(ca: str | None) -> ssl.SSLContext:
    if ca is None:
        found = ssl.create_default_context()
        if find_spec("certifi") is not None:  # where Python finds no authorities of the system
            import certifi

            found.load_verify_locations(certifi.where())
        return found
    try:
        return ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        raise ArgumentError(f"{ca!r:.200} is no file of certificates (PEM): {error}") from None
