"""The trusted certificate authorities: those of the system, or those in a file.

A company's server often has a certificate from a private authority. Its file is passed to ``connect(ca=)`` for one
server, or set in ``GRADWIRE_CA_FILE`` for all.
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
"""The CA file of each server that was given one."""


def believe(url: str, ca: str | os.PathLike[str]) -> None:
    """Trust the authorities in this file (PEM) for the server at this URL from now on.

    Raises:
        ArgumentError: when the file holds no certificates.
    """
    path = os.fspath(ca)
    _context(path)
    _files[_server(url)] = path


def context(url: str) -> ssl.SSLContext:
    """The SSL context for connections to this URL.

    Raises:
        ArgumentError: when the file in ``GRADWIRE_CA_FILE`` holds no certificates.
    """
    return _context(_files.get(_server(url)) or os.environ.get(VARIABLE) or None)


def distrusted(url: str, error: ssl.SSLCertVerificationError) -> Unavailable:
    """The error for an untrusted certificate. It may also be a captive portal that answers, as in a hotel's network."""
    return Unavailable(
        f"the certificate of {url} is not trusted here: {error.verify_message}. If it comes from a private authority, "
        f"pass the authority's file as connect(ca=...) or set {VARIABLE}"
    )


def _server(url: str) -> str:
    return urlsplit(url).netloc.lower()


@lru_cache(maxsize=32)
def _context(ca: str | None) -> ssl.SSLContext:
    if ca is None:
        found = ssl.create_default_context()
        if find_spec("certifi") is not None:  # for systems where Python finds no authorities
            import certifi

            found.load_verify_locations(certifi.where())
        return found
    try:
        return ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        raise ArgumentError(f"{ca!r:.200} is not a file of certificates (PEM): {error}") from None
