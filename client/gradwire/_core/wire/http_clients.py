"""HTTP connections that no interrupted request is left on.

httpx is not made for exceptions at any moment: a KeyboardInterrupt inside a request can leave a connection in its pool
that takes no further request. So each request borrows a client of its own, and only one that ended gives it back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import tls
from .server_url import check_url

if TYPE_CHECKING:
    import httpx


class HttpClients:
    """The idle clients of one server. Any thread may borrow one.

    Raises:
        ArgumentError: when the file of certificate authorities holds none.
        ArgumentValueError: when a client is borrowed for a URL that is none of a server.
    """

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
        self.url = url.rstrip("/")
        self.headers = headers
        self._timeout = timeout
        # Without TLS there is nothing to verify, and loading the certificate authorities would take 20 ms.
        self._verify = tls.context(url) if url.startswith("https:") else False
        self._idle: deque[httpx.Client] = deque()
        self._closed = False

    @contextmanager
    def borrowed(self) -> Iterator[httpx.Client]:
        """A client for one request. After an exception it is closed, whatever state its connection is in."""
        client = self._taken()
        try:
            yield client
        except BaseException:
            client.close()
            raise
        if self._closed:
            client.close()
        else:
            self._idle.append(client)

    def _taken(self) -> httpx.Client:
        import httpx

        check_url(self.url)
        try:
            return self._idle.pop()
        except IndexError:
            return httpx.Client(base_url=self.url, headers=self.headers, timeout=self._timeout, verify=self._verify)

    def close(self) -> None:
        """Close the idle clients, and those that are borrowed when they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
