"""The server's certificate: checked before the start, and taken up anew when its files were renewed."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Final

import structlog

from ..settings import Settings

LOOK_EVERY_S: Final = 30.0

log = structlog.get_logger("gradwire.tls")


def check_certificate(settings: Settings) -> None:
    """Load the certificate and its key once, to complain about them before anything else is done.

    Raises:
        ValueError: when they cannot be used.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (ssl.SSLError, OSError) as error:
        raise ValueError(
            f"{settings.tls_cert} (GRADWIRE_TLS_CERT) and {settings.tls_key} (GRADWIRE_TLS_KEY) are no certificate "
            f"with its key: {error}"
        ) from None


async def keep_renewed(settings: Settings, context: ssl.SSLContext) -> None:
    """Look at the certificate's files, forever: what was renewed serves the connections that begin from then on."""
    if settings.tls_cert is None or settings.tls_key is None:
        return
    served = _stamp(settings.tls_cert, settings.tls_key)
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        found = _stamp(settings.tls_cert, settings.tls_key)
        if found in (served, None):
            continue
        try:
            # Both are checked on a context of their own first: one file may be written and the other not yet.
            check_certificate(settings)
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
        except (ValueError, ssl.SSLError, OSError) as error:
            log.warning("the renewed certificate cannot be used: the old one goes on", reason=str(error))
        else:
            served = found
            log.info("the certificate was renewed")


def _stamp(*paths: Path) -> tuple[tuple[int, int], ...] | None:
    """What tells whether files have changed; ``None`` while one of them is missing."""
    try:
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in (path.stat() for path in paths))
    except OSError:
        return None
