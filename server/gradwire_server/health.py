"""Ask a server on this machine whether it answers: ``python -m gradwire_server.health``, for an image without curl.

It reads the same variables as the server that runs beside it. Containers run this every few seconds, so it imports
the standard library and nothing else.
"""

from __future__ import annotations

import argparse
import http.client
import os
import ssl
import sys
from collections.abc import Mapping, Sequence
from typing import Final

EXIT_WELL: Final = 0
EXIT_UNWELL: Final = 1
"""Docker knows no other status of a health check than these two."""

_LOOPBACK: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="python -m gradwire_server.health",
        description="Ask the server that GRADWIRE_HOST and GRADWIRE_PORT name whether it answers.",
        epilog="The exit status is 0 if it answered with 200, and 1 for anything else.",
    )
    found.add_argument("path", nargs="?", default="/readyz", choices=("/livez", "/readyz"), help="what to ask for")
    found.add_argument("--timeout", type=float, default=4.0, metavar="SECONDS", help="how long to wait (4)")
    return found


def connection(variables: Mapping[str, str], timeout: float) -> http.client.HTTPConnection:
    """A connection to the server that these variables configure, not opened yet.

    Raises:
        ValueError: when GRADWIRE_PORT is no number.
    """
    host = variables.get("GRADWIRE_HOST", "")
    host = _LOOPBACK.get(host, host)
    port = int(variables.get("GRADWIRE_PORT") or 8000)
    if not variables.get("GRADWIRE_TLS_CERT"):
        return http.client.HTTPConnection(host, port, timeout=timeout)
    # The certificate carries the public name and may be one of a private authority. Who answers is not in question
    # here, and no secret is sent.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)


def ask(path: str, variables: Mapping[str, str], timeout: float) -> str | None:
    """Why the server is not well, or ``None`` when it is."""
    try:
        asked = connection(variables, timeout)
        try:
            asked.request("GET", path, headers={"Connection": "close"})
            answer = asked.getresponse()
            text = answer.read(4096).decode(errors="replace")
        finally:
            asked.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"{path}: {error}"
    return None if answer.status == 200 else f"{path}: {answer.status} {text}"


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status; why it is not 0 is told on stderr."""
    options = parser().parse_args(argv)
    unwell = ask(options.path, os.environ, options.timeout)
    if unwell is not None:
        print(unwell, file=sys.stderr)
    return EXIT_WELL if unwell is None else EXIT_UNWELL


if __name__ == "__main__":
    sys.exit(main())
