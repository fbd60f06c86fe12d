"""The REST side of a session: what is rare enough not to need the stream.

The libraries behind it are imported when a session is opened: ``import gradwire`` is to be quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradwire_protocol.errors import GradwireError, Unavailable, from_code

from .quiet import unlogged

if TYPE_CHECKING:
    import httpx


class Rest:
    """A small HTTP client that turns problem+json into typed errors.

    GET and DELETE are tried again, with growing pauses and jitter, when the server says that this may help.
    """

    def __init__(self, url: str, api_key: str | None, timeout: float = 30.0) -> None:
        import httpx
        import stamina  # noqa: F401  (imported at exit, it would make Python forget that an interrupt ended the program)

        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=timeout)

    def get(self, path: str) -> Any:
        """GET, decoded from JSON."""
        return self._safely("GET", path)

    def delete(self, path: str) -> None:
        """DELETE."""
        self._safely("DELETE", path)

    def post(self, path: str, body: Any) -> Any:
        """POST of JSON, answered by JSON. Never repeated, since it may have had its effect."""
        return self._request("POST", path, body)

    def close(self) -> None:
        """Close the connections."""
        with unlogged():
            self._http.close()

    def _safely(self, method: str, path: str) -> Any:
        import stamina

        for attempt in stamina.retry_context(on=Unavailable, attempts=4, timeout=20.0, wait_initial=0.1):
            with attempt:
                return self._request(method, path, None)
        raise AssertionError("unreachable")

    def _request(self, method: str, path: str, body: Any) -> Any:
        import httpx

        try:
            with unlogged():
                response = self._http.request(method, path, json=body)
        except httpx.TransportError as error:
            raise Unavailable(f"{self._http.base_url} cannot be reached: {error}") from None
        if response.is_success:
            return response.json() if response.content else None
        raise problem_error(response)


def problem_error(response: httpx.Response) -> GradwireError:
    """The typed error of a response that is not a success."""
    try:
        body = response.json()
        return from_code(str(body["code"]), str(body.get("detail", body.get("title", ""))), **body.get("extra", {}))
    except (ValueError, KeyError, TypeError):
        return Unavailable(f"the server answered with HTTP {response.status_code} and no explanation")
