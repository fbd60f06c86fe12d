"""The server's TLS certificate: checked at start and reloaded when its files change."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Final

import structlog

from ..settings.settings import Settings

LOOK_EVERY_S: Final = 30.0

log = structlog.get_logger("gradwire.tls")


def check_certificate(settings: Settings) -> None:
    """Check the certificate and its key early in the start.

    Raises:
        ValueError: when they are invalid or unreadable.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (ssl.SSLError, OSError) as error:
        raise ValueError(
            f"{settings.tls_cert} (GRADWIRE_TLS_CERT) and {settings.tls_key} (GRADWIRE_TLS_KEY) are not a certificate "
            f"and its key: {error}"
        ) from None


async def keep_renewed(settings: Settings, context: ssl.SSLContext) -> None:
    """Reload the certificate when its files change, forever. New connections use the new certificate."""
    if settings.tls_cert is None or settings.tls_key is None:
        return
    served = _stamp(settings.tls_cert, settings.tls_key)
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        found = _stamp(settings.tls_cert, settings.tls_key)
        if found in (served, None):
            continue
        try:
            # Check on a separate context first: the other file may not be written yet.
            check_certificate(settings)
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
        except (ValueError, ssl.SSLError, OSError) as error:
            log.warning("invalid renewed certificate; keeping the old one", reason=str(error))
        else:
            served = found
            log.info("certificate reloaded")


def _stamp(*paths: Path) -> tuple[tuple[int, int], ...] | None:
    """Modification times and sizes of files; ``None`` while a file is missing."""
    try:
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in (path.stat() for path in paths))
    except OSError:
        return None
