"""Health check of a local server, for images without curl: ``python -m gradwire_server.health``.

It reads the server's environment variables. It imports only the standard library, because containers run it every few
seconds.
"""

from __future__ import annotations

import argparse
import http.client
import os
import ssl
import sys
from collections.abc import Mapping, Sequence
from typing import Final

EXIT_HEALTHY: Final = 0
EXIT_UNHEALTHY: Final = 1
"""Docker accepts only these two statuses of a health check."""

_LOOPBACK: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m gradwire_server.health",
        description="Check the health of the server at GRADWIRE_HOST and GRADWIRE_PORT.",
        epilog="Exit status: 0 if the server answers 200, else 1.",
    )
    result.add_argument(
        "path", nargs="?", default="/readyz", choices=("/livez", "/readyz"), help="path to request (default: /readyz)"
    )
    result.add_argument("--timeout", type=float, default=4.0, metavar="SECONDS", help="timeout (default: 4)")
    return result


def connection(variables: Mapping[str, str], timeout: float) -> http.client.HTTPConnection:
    """An unopened connection to the server that these variables configure.

    Raises:
        ValueError: when GRADWIRE_PORT is not a number.
    """
    host = variables.get("GRADWIRE_HOST", "")
    host = _LOOPBACK.get(host, host)
    port = int(variables.get("GRADWIRE_PORT") or 8000)
    if not variables.get("GRADWIRE_TLS_CERT"):
        return http.client.HTTPConnection(host, port, timeout=timeout)
    # The certificate has the public name and may come from a private authority. The check sends no secret, so the
    # identity of the server does not matter.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)


def check(path: str, variables: Mapping[str, str], timeout: float) -> str | None:
    """Why the server is unhealthy, or ``None`` when it is healthy."""
    try:
        server = connection(variables, timeout)
        try:
            server.request("GET", path, headers={"Connection": "close"})
            response = server.getresponse()
            text = response.read(4096).decode(errors="replace")
        finally:
            server.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"{path}: {error}"
    return None if response.status == 200 else f"{path}: {response.status} {text}"


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status; print the reason of a failure to stderr."""
    options = parser().parse_args(argv)
    problem = check(options.path, os.environ, options.timeout)
    if problem is not None:
        print(problem, file=sys.stderr)
    return EXIT_HEALTHY if problem is None else EXIT_UNHEALTHY


if __name__ == "__main__":
    sys.exit(main())
