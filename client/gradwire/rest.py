"""The REST side of a session: what is rare enough not to need the stream.

The libraries behind it are imported when a session is opened: ``import gradwire`` is to be quick.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.errors import ArgumentValueError, GradwireError, TooManyRequests, Unavailable, from_code

from . import trust
from .connection import retry_after
from .patience import LONGEST_PAUSE_S, Patience
from .quiet import unlogged
from .tracing import traceparent

if TYPE_CHECKING:
    import httpx

TRIES: Final = 8
TRYING_S: Final = 20.0
CANCEL_PATIENCE_S: Final = 2.0
FILE_PATIENCE_S: Final = 600.0
"""How long a server may take to make a file of a session, or a session of a file."""


class Rest:
    """A small HTTP client that turns problem+json into typed errors.

    Requests are tried again, with growing pauses and jitter, when the server says that this may help, or was not heard
    of: a few times, or for ``patience`` seconds where that is given. A POST brings a key of its own by which the server
    knows it again, so that it has its effect once.
    """

    def __init__(
        self, url: str, api_key: str | None, timeout: float = 30.0, patience: float | None = None
    ) -> None:  # fmt: skip
        import httpx

        self._timeout = timeout
        self._patience = patience

        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # Without TLS there is nothing to verify, and reading all the world's authorities would take 20 ms.
        verify = trust.context(url) if url.startswith("https:") else False
        self._http = httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=timeout, verify=verify)

    def get(self, path: str) -> Any:
        """GET, decoded from JSON."""
        return self._safely("GET", path, patience_s=self._patience)

    def delete(self, path: str) -> None:
        """DELETE. Tried a few times only: it is the last that a program does, and sessions expire by themselves."""
        self._safely("DELETE", path, patience_s=None)

    def cancel(self, path: str) -> None:
        """DELETE, tried once and for a short time: whoever wants it is about to do something else."""
        import httpx

        try:
            with unlogged():
                self._http.delete(path, timeout=CANCEL_PATIENCE_S)
        except httpx.HTTPError:
            pass

    def post(self, path: str, body: Any) -> Any:
        """POST of JSON, answered by JSON. For routes that know an ``Idempotency-Key``."""
        headers = {"Idempotency-Key": secrets.token_urlsafe(18)}
        return self._safely("POST", path, body, headers, patience_s=self._patience)

    @contextmanager
    def download(self, path: str) -> Iterator[tuple[int | None, Iterator[bytes]]]:
        """GET of a file that may be large: its size, where it is told, and its pieces."""
        import httpx

        try:
            with unlogged(), self._http.stream("GET", path, timeout=FILE_PATIENCE_S) as response:
                if not response.is_success:
                    response.read()
                    raise problem_error(response)
                size = response.headers.get("Content-Length")
                yield (None if size is None else int(size)), response.iter_bytes()
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def upload(self, path: str, pieces: Iterator[bytes], size: int, kind: str, query: dict[str, Any]) -> Any:
        """POST of a file that may be large. Never repeated, since it may have had its effect."""
        import httpx

        headers = {"Content-Type": kind, "Content-Length": str(size)}
        try:
            with unlogged():
                response = self._http.post(path, content=pieces, headers=headers, params=query, timeout=FILE_PATIENCE_S)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if response.is_success:
            return response.json()
        raise problem_error(response)

    def _unreachable(self, error: Exception) -> GradwireError:
        if (cause := _certificate(error)) is not None:
            return trust.distrusted(str(self._http.base_url), cause)
        url = self._http.base_url
        if url.scheme == "http" and str(error).startswith("Server disconnected"):
            return Unavailable(f"{url} hangs up without an answer: it may be one for https://")
        return Unavailable(f"{url} cannot be reached: {error}")

    def close(self) -> None:
        """Close the connections."""
        with unlogged():
            self._http.close()

    def _safely(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, *,
        patience_s: float | None,
    ) -> Any:  # fmt: skip
        patience = Patience(TRYING_S if patience_s is None else patience_s)
        while True:
            try:
                with patience.trying(self._timeout):
                    return self._request(method, path, body, headers)
            except (Unavailable, TooManyRequests) as error:
                pause = _pause(error)
                few = patience_s is None and patience.tries + 1 >= TRIES
                if pause is None or few or not patience.pause(pause):
                    raise

    def _request(self, method: str, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        import httpx

        if trace := traceparent():
            headers = {**(headers or {}), "traceparent": trace}
        try:
            with unlogged():
                response = self._http.request(method, path, json=body, headers=headers)
        except httpx.UnsupportedProtocol:
            url = str(self._http.base_url).rstrip("/")
            raise ArgumentValueError(f"{url!r} is no URL of a server: one begins with http:// or https://") from None
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if response.is_success:
            return response.json() if response.content else None
        refused = problem_error(response)
        asked = retry_after(response.headers.get("Retry-After"))
        if asked:
            refused.details["retry_after"] = asked
        raise refused


def _certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """What was wrong with the server's certificate, where that is behind an error."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _pause(error: Unavailable | TooManyRequests) -> float | None:
    """The seconds that the server wants to be left alone before another try; ``None`` where none can help."""
    asked = float(error.details.get("retry_after", 0))
    if isinstance(error, TooManyRequests) and not asked:
        return None  # such as too many sessions: waiting alone does not end that
    if error.details.get("status", 500) < 500:
        return None  # what answers there is no gradwire server
    return min(asked, LONGEST_PAUSE_S)


def problem_error(response: httpx.Response) -> GradwireError:
    """The typed error of a response that is not a success."""
    try:
        body = response.json()
        return from_code(str(body["code"]), str(body.get("detail", body.get("title", ""))), **body.get("extra", {}))
    except (ValueError, KeyError, TypeError):
        text = f"the server answered with HTTP {response.status_code} and no explanation"
        return Unavailable(text, status=response.status_code)
