"""The client of a session's REST API, for operations too rare to need the stream.

Its libraries are imported when a session is opened, to keep ``import gradwire`` fast.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.errors import GradwireError, TooManyRequests, Unauthorized, Unavailable, from_code

from ..context.trace_context import traceparent
from ..context.waiting import Facts, Wait
from . import tls
from .connection import retry_after
from .http_clients import HttpClients
from .http_logging import unlogged
from .retry import LONGEST_PAUSE_S, RetryPolicy
from .server_url import what_to_set

if TYPE_CHECKING:
    import httpx

TRIES: Final = 8
TRYING_S: Final = 20.0
CANCEL_PATIENCE_S: Final = 2.0
GLANCE_S: Final = 1.0
ONCE_S: Final = 3.0
FILE_PATIENCE_S: Final = 600.0
"""How long a server may take to export or import a session."""


class RestClient:
    """A small HTTP client that turns problem+json into typed errors.

    Requests are retried, with growing pauses and jitter, when the server asks for it or did not answer: a few times, or
    for ``patience`` seconds if given. A POST has an idempotency key, so that a repeated one has no second effect.
    """

    def __init__(self, url: str, api_key: str | None, timeout: float = 30.0, patience: float | None = None) -> None:
        self._timeout = timeout
        self._patience = patience
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.clients = HttpClients(url, headers, timeout)

    def get(self, path: str, timeout: float | None = None) -> Any:
        """GET a path and decode the JSON answer, which may take ``timeout`` seconds."""
        return self._safely("GET", path, patience_s=self._patience, timeout=timeout)

    def get_once(self, path: str) -> Any:
        """GET a path once, with a short timeout: for what is merely looked at."""
        return self._request("GET", path, None, None, ONCE_S)

    def delete(self, path: str) -> None:
        """DELETE a path. Retried only a few times: programs do this at their end, and sessions expire anyway."""
        self._safely("DELETE", path, patience_s=None)

    def cancel(self, path: str) -> None:
        """DELETE a path, once and with a short timeout, ignoring failures: the caller has been interrupted."""
        import httpx

        try:
            with unlogged(), self.clients.borrowed() as http:
                http.delete(path, timeout=CANCEL_PATIENCE_S)
        except httpx.HTTPError:
            pass

    def glance(self, path: str) -> Any:
        """GET a path once and soon, for somebody who looks at a wait; ``None`` if there is no good answer."""
        import httpx

        try:
            with unlogged(), self.clients.borrowed() as http:
                response = http.get(path, timeout=GLANCE_S)
            return response.json() if response.is_success else None
        except (httpx.HTTPError, GradwireError, ValueError, RuntimeError):
            return None

    def post(self, path: str, body: Any, timeout: float | None = None) -> Any:
        """POST JSON and decode the JSON answer, which may take ``timeout`` seconds. For routes that accept an
        ``Idempotency-Key``, or that may be asked twice."""
        headers = {"Idempotency-Key": secrets.token_urlsafe(18)}
        return self._safely("POST", path, body, headers, patience_s=self._patience, timeout=timeout)

    def put(self, path: str, body: Any, timeout: float | None = None) -> Any:
        """PUT JSON and decode the JSON answer, which may take ``timeout`` seconds. It may be asked twice."""
        return self._safely("PUT", path, body, patience_s=self._patience, timeout=timeout)

    @contextmanager
    def download(self, path: str) -> Iterator[tuple[int | None, Iterator[bytes]]]:
        """GET a file that may be large: its size, if the server states it, and its pieces."""
        import httpx

        try:
            with (
                unlogged(),
                self.clients.borrowed() as http,
                http.stream("GET", path, timeout=FILE_PATIENCE_S) as response,
            ):
                if not response.is_success:
                    response.read()
                    raise problem_error(response)
                size = response.headers.get("Content-Length")
                yield (None if size is None else int(size)), response.iter_bytes()
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def upload(self, path: str, pieces: Iterator[bytes], size: int, kind: str, query: dict[str, Any]) -> Any:
        """POST a file that may be large. Never retried, since the request may have taken effect."""
        import httpx

        headers = {"Content-Type": kind, "Content-Length": str(size)}
        try:
            with unlogged(), self.clients.borrowed() as http:
                response = http.post(path, content=pieces, headers=headers, params=query, timeout=FILE_PATIENCE_S)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if response.is_success:
            return response.json()
        raise problem_error(response)

    def _unreachable(self, error: Exception) -> GradwireError:
        if (cause := _certificate(error)) is not None:
            return tls.distrusted(self.clients.url, cause)
        url = self.clients.url
        if url.startswith("http:") and str(error).startswith("Server disconnected"):
            return Unavailable(f"{url} closed the connection without an answer: it may require https://")
        return Unavailable(f"{url} cannot be reached: {error}{what_to_set(url)}")

    def close(self) -> None:
        """Close the connections."""
        with unlogged():
            self.clients.close()

    def _safely(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, *,
        patience_s: float | None, timeout: float | None = None,
    ) -> Any:  # fmt: skip
        timeout = self._timeout if timeout is None else timeout
        patience = RetryPolicy(TRYING_S if patience_s is None else patience_s)
        cause = ""

        def facts() -> Facts:
            return Facts(
                "connection", url=self.clients.url, cause=cause, again_at=patience.again_at, left=patience.left
            )

        wait = Wait(facts)
        try:
            while True:
                try:
                    with patience.trying(timeout):
                        return self._request(method, path, body, headers, timeout)
                except (Unavailable, TooManyRequests) as error:
                    pause, cause = _pause(error), error.message
                    few = patience_s is None and patience.tries + 1 >= TRIES
                    wait.look()
                    if pause is None or few or not patience.pause(pause, wait):
                        raise
        finally:
            wait.end()

    def _request(self, method: str, path: str, body: Any, headers: dict[str, str] | None, timeout: float) -> Any:
        import httpx

        if trace := traceparent():
            headers = {**(headers or {}), "traceparent": trace}
        try:
            with unlogged(), self.clients.borrowed() as http:
                response = http.request(method, path, json=body, headers=headers, timeout=timeout)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if response.is_success:
            return response.json() if response.content else None
        refused = problem_error(response)
        if isinstance(refused, Unauthorized):
            refused.args = (
                f"{refused.message}: set GRADWIRE_API_KEY to a key of {self.clients.url}, or pass api_key=",
            )
        asked = retry_after(response.headers.get("Retry-After"))
        if asked:
            refused.details["retry_after"] = asked
        raise refused


def _certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The certificate error that caused this error, if any."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _pause(error: Unavailable | TooManyRequests) -> float | None:
    """The seconds to pause before a retry, as the server asked; ``None`` if a retry cannot help."""
    asked = float(error.details.get("retry_after", 0))
    if isinstance(error, TooManyRequests) and not asked:
        return None  # for example too many sessions: waiting alone does not help
    if error.details.get("status", 500) < 500:
        return None  # the answer is not from a gradwire server
    return min(asked, LONGEST_PAUSE_S)


def problem_error(response: httpx.Response) -> GradwireError:
    """The typed error of an unsuccessful response."""
    try:
        body = response.json()
        return from_code(str(body["code"]), str(body.get("detail", body.get("title", ""))), **body.get("extra", {}))
    except (ValueError, KeyError, TypeError):
        text = f"the server answered with HTTP {response.status_code} and no explanation"
        return Unavailable(text, status=response.status_code)
