"""What single requests tell: whether a server answers and takes the key, its version, its clock, the key's limits."""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import MIN_PROTOCOL_VERSION, PROTOCOL_VERSION

from ..._core.context.version import __version__
from ..._core.wire.http_clients import HttpClients
from ..._core.wire.http_logging import unlogged
from ..._core.wire.rest import problem_error
from ..sizes import bytes_text, seconds_text
from .address import Address, shown, speaks_tls
from .findings import Finding, Status
from .patience import TookTooLong, within

CLOCK_S: Final = 5.0
"""A difference of clocks that is worth a warning: tickets live for half a minute."""
SLOW_S: Final = 0.1
ROUND_TRIPS: Final = 10
MEASURING_S: Final = 2.0
KEY_SOON_DAYS: Final = 7
LARGEST_ANSWER: Final = 8 << 20


class Unanswered(Exception):
    """A request got no answer."""


class Asker:
    """Sends requests to a server, each once and with a limit of time.

    Args:
        key: the API key, for requests that need one.
        seconds: the limit of a request, unless it names another.
    """

    def __init__(self, address: Address, key: str, seconds: float) -> None:
        self.address = address
        self.key = key
        self.seconds = seconds
        self._clients = HttpClients(address.url, {}, seconds)

    def ask(
        self, method: str, path: str, *, authorized: bool = True, seconds: float = 0.0, most: int = LARGEST_ANSWER,
        headers: dict[str, str] | None = None, **more: Any,
    ) -> httpx.Response:  # fmt: skip
        """The answer, whatever its status, of so many bytes at most.

        Raises:
            Unanswered: when there is none in time.
        """
        seconds = seconds or self.seconds
        headers = dict(headers or {})
        if authorized and self.key:
            headers["Authorization"] = f"Bearer {self.key}"

        def request() -> httpx.Response:
            with unlogged(), self._clients.borrowed() as http, http.stream(
                method, path, headers=headers, timeout=seconds, **more
            ) as response:  # fmt: skip
                read = bytearray()
                for piece in response.iter_bytes():
                    read += piece
                    if len(read) > most:
                        raise Unanswered(f"the answer is longer than {bytes_text(most)}")
                return httpx.Response(
                    response.status_code, headers=_plain(response.headers), content=bytes(read),
                    request=response.request,
                )  # fmt: skip

        try:
            return within(seconds, request)
        except (TookTooLong, httpx.TimeoutException):
            raise Unanswered(f"no answer within {seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unanswered(str(error) or type(error).__name__) from None

    def get(self, path: str) -> Any:
        """The JSON of a successful answer.

        Raises:
            Unanswered: when there is none in time, or it is not JSON.
            GradwireError: when the server refuses.
        """
        response = self.ask("GET", path)
        if not response.is_success:
            raise problem_error(response)
        try:
            return response.json()
        except ValueError:
            raise Unanswered("the answer is not JSON") from None

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()


def _plain(headers: httpx.Headers) -> httpx.Headers:
    """Headers of content that is decoded already."""
    dropped = ("content-encoding", "content-length", "transfer-encoding")
    return httpx.Headers([(name, value) for name, value in headers.items() if name not in dropped])


def check_server(asker: Asker) -> Finding:
    """Whether a gradwire server answers, and takes requests."""
    address = asker.address
    try:
        response = asker.ask("GET", "/readyz", authorized=False)
    except Unanswered as error:
        if not address.secure and speaks_tls(address, asker.seconds):
            advice = f"write {address.shown.replace('http://', 'https://', 1)}"
            return Finding("server", Status.FAILURE, f"port {address.port} speaks TLS", advice)
        advice = "it may be overloaded or hang: look at its log, and restart it if it stays so"
        return Finding("server", Status.FAILURE, f"{error}", advice)
    if response.is_success and _field(response, "status") == "ready":
        return Finding("server", Status.OK, "ready", facts={"status": "ready"})
    if response.status_code == 503 and _field(response, "code") == "unavailable":
        text = f"it takes no requests now: {_field(response, 'detail')}"
        return Finding("server", Status.FAILURE, text, "try again when it has restarted")
    what = f"HTTP {response.status_code}"
    if by := response.headers.get("server"):
        what += f" from {by[:40]}"
    if response.status_code in (502, 503, 504):
        advice = "a proxy answers, and the server behind it does not: look at both"
        return Finding("server", Status.FAILURE, f"the answer is {what}, not a gradwire server's", advice)
    if response.is_redirect:
        target = shown(response.headers.get("location", "")).removesuffix("/readyz")
        text = f"the answer is {what}, a redirect to {target[:100]}"
        return Finding("server", Status.FAILURE, text, "set GRADWIRE_URL to the URL that it leads to")
    advice = "something else listens there: check host, port and the path of the URL"
    return Finding("server", Status.FAILURE, f"the answer is {what}, not a gradwire server's", advice)


def _field(response: httpx.Response, name: str) -> str:
    try:
        found = response.json()
    except ValueError:
        return ""
    return str(found.get(name, "")) if isinstance(found, dict) else ""


def check_form_of_key(key: str, source: str) -> Finding | None:
    """What is wrong with the text of a key, if anything."""
    facts = {"source": source, "given": bool(key)}
    if not key:
        advice = "set GRADWIRE_API_KEY; gradwire-server prints a key when it starts, gradwire keys create makes more"
        return Finding("key", Status.FAILURE, "no key is given", advice, facts)
    if key != key.strip() or any(mark in key for mark in "'\" \t\r\n"):
        return Finding("key", Status.FAILURE, f"the key ({source}) contains blanks or quotes", "remove them", facts)
    if not (key.isascii() and key.isprintable()):
        text = f"the key ({source}) contains characters that no key has"
        return Finding("key", Status.FAILURE, text, "copy it again", facts)
    if key.lower().startswith("bearer"):
        return Finding("key", Status.FAILURE, f"the key ({source}) begins with Bearer", "remove that word", facts)
    return None


def check_key(asker: Asker, source: str) -> tuple[Finding, dict[str, Any] | None]:
    """Whether the server takes the key; with what ``GET /v1/version`` answers."""
    if (wrong := check_form_of_key(asker.key, source)) is not None:
        return wrong, None
    facts = {"source": source, "given": True}
    try:
        version = asker.get("/v1/version")
    except Unanswered as error:
        return Finding("key", Status.FAILURE, str(error), "look at the server's log", facts), None
    except GradwireError as error:
        facts["code"] = error.code
        if error.code == "unauthorized":
            advice = f"correct the key ({source}); gradwire keys list shows the ids of the keys that it has"
            return Finding("key", Status.FAILURE, f"refused: {error.message.split(';')[0]}", advice, facts), None
        if error.code == "forbidden":
            advice = "programs need a key with the scope session: gradwire keys create --name NAME"
            return Finding("key", Status.FAILURE, error.message, advice, facts), None
        advice = "wait a minute" if error.code == "too_many_requests" else "look at the server's log"
        return Finding("key", Status.FAILURE, f"{error.code}: {error.message}", advice, facts), None
    if not isinstance(version, dict) or version.get("name") != "gradwire":
        text = "/v1/version is not a gradwire server's"
        return Finding("key", Status.FAILURE, text, "check the path of the URL", facts), None
    return Finding("key", Status.OK, f"accepted ({source})", facts=facts), version


def check_versions(version: dict[str, Any]) -> Finding:
    """Whether client and server understand each other."""
    theirs, protocol = str(version.get("version", "?")), version.get("protocol")
    facts = {"client": __version__, "server": theirs, "client_protocol": PROTOCOL_VERSION, "server_protocol": protocol}
    text = f"client {__version__}, server {theirs}, protocol {protocol}"
    if not isinstance(protocol, int):
        return Finding("versions", Status.FAILURE, text, "the server names no protocol: upgrade it", facts)
    if protocol < MIN_PROTOCOL_VERSION:
        advice = f"upgrade the server: this client speaks protocol {MIN_PROTOCOL_VERSION} to {PROTOCOL_VERSION}"
        return Finding("versions", Status.FAILURE, text, advice, facts)
    if protocol > PROTOCOL_VERSION:
        advice = f"upgrade the client, which speaks protocol {PROTOCOL_VERSION}: pip install -U gradwire"
        return Finding("versions", Status.WARNING, text, advice, facts)
    if theirs != __version__:
        advice = "nothing, as long as you miss nothing: they speak the same protocol, but may lack each other's ops"
        return Finding("versions", Status.WARNING, text, advice, facts)
    return Finding("versions", Status.OK, text, facts=facts)


def check_clock(asker: Asker) -> Finding:
    """The difference of the clocks, to about a second, from the ``Date`` of an answer."""
    asked = time.time()
    try:
        response = asker.ask("GET", "/livez", authorized=False)
    except Unanswered as error:
        return Finding("clock", Status.WARNING, str(error), "run this again")
    answered = time.time()
    try:
        theirs = parsedate_to_datetime(response.headers.get("date", "")).timestamp() + 0.5
    except ValueError:
        return Finding("clock", Status.SKIPPED, "the server does not tell its time")
    # The header has whole seconds, and servers may renew it only once a second.
    difference, room = theirs - (asked + answered) / 2, 1.5 + (answered - asked) / 2
    facts = {"ahead_s": round(difference, 2), "uncertainty_s": round(room, 2)}
    if abs(difference) <= room:
        return Finding("clock", Status.OK, "the server's clock and this one agree to about a second", facts=facts)
    text = f"the server's clock is {abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} this one"
    if abs(difference) - room > CLOCK_S:
        advice = "set both by NTP: certificates, keys and tickets expire by the clock"
        return Finding("clock", Status.WARNING, text, advice, facts)
    return Finding("clock", Status.OK, text, facts=facts)


def check_latency(asker: Asker) -> Finding:
    """The time of a round trip on an open connection."""
    times: list[float] = []
    until = time.monotonic() + MEASURING_S
    try:
        for _ in range(ROUND_TRIPS + 1):
            began = time.perf_counter()
            asker.ask("GET", "/livez", authorized=False)
            times.append(time.perf_counter() - began)
            if time.monotonic() > until and len(times) > 1:
                break
    except Unanswered as error:
        return Finding("latency", Status.WARNING, str(error), "run this again; the connection is unreliable")
    times = times[1:] or times  # the first opened the connection
    middle = statistics.median(times)
    facts = {name: round(each * 1e3, 3) for name, each in
             (("median_ms", middle), ("least_ms", min(times)), ("most_ms", max(times)))}  # fmt: skip
    text = f"{seconds_text(middle)} a round trip ({seconds_text(min(times))} to {seconds_text(max(times))})"
    if middle > SLOW_S:
        advice = "each read of a value costs one: read several with torch.fetch, and let repeat or compile run steps"
        return Finding("latency", Status.WARNING, text, advice, facts)
    return Finding("latency", Status.OK, text, facts=facts)


def check_limits(told: dict[str, Any]) -> Finding:
    """The key's scopes, expiry and limits."""
    key, limits, sessions = told["key"], told["limits"], told["sessions"]
    facts = {"key": key, "limits": limits, "sessions": sessions}
    most = limits.get("max_key_sessions") or limits.get("max_sessions")
    parts = [
        f"{sessions if sessions is not None else '?'} of {most} sessions",
        f"{bytes_text(limits['max_session_bytes'])} a session",
        f"{bytes_text(limits['max_tensor_bytes'])} a tensor",
    ]
    if frame := limits.get("max_frame_seconds"):
        parts.append(f"{frame} s a frame")
    for name, unit in (("ops", ""), ("requests", "")):
        if rate := limits.get(f"max_{name}_per_second"):
            parts.append(f"{rate:,} {name}/s{unit}")
    if rate := limits.get("max_bytes_per_second"):
        parts.append(f"{bytes_text(rate)}/s")
    text = f"key {key['id']} ({', '.join(key['scopes'])}): " + ", ".join(parts)
    if key["expires_at"]:
        ends = datetime.fromisoformat(key["expires_at"].replace("Z", "+00:00"))
        days = (ends - datetime.now(UTC)).total_seconds() / 86400
        text += f"; the key expires on {ends:%Y-%m-%d}"
        if days < KEY_SOON_DAYS:
            return Finding("limits", Status.WARNING, text, "ask for a new key: gradwire keys create", facts)
    if sessions is not None and most and sessions >= most:
        advice = "no new session can be opened: end one (gradwire sessions ls, gradwire sessions kill ID)"
        return Finding("limits", Status.WARNING, text, advice, facts)
    return Finding("limits", Status.OK, text, facts=facts)
