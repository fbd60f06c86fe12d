"""The order of the checks. A check that needs what another did not find is left out, and named."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

from gradwire_protocol.errors import GradwireError

from ..._core.wire.embedded_server import EmbeddedServer
from . import address as places
from . import answering, computing, machine
from .answering import Asker, Unanswered
from .findings import Finding, Status
from .patience import TookTooLong, within

CHECKS: Final = (
    "client", "url", "address", "tls", "server", "clock", "latency", "key", "versions", "session", "stream",
    "bandwidth", "devices", "gpu", "kernels", "disk", "limits",
)  # fmt: skip
"""All checks, in their order."""

STARTING_S: Final = 60.0
_TOO_OLD: Final = "the server does not tell this; it is older than the client"


class Examination:
    """One run of all checks.

    Args:
        url: the server's URL, or empty for the embedded server that programs would start.
        source: where the URL comes from.
        key: the API key, or empty.
        key_source: where the key comes from.
        seconds: the limit of one request or connection.
    """

    def __init__(self, url: str, source: str, key: str, key_source: str, seconds: float) -> None:
        self.secrets = [key]
        self._url, self._source = url, source
        self._key, self._key_source = key, key_source
        self._seconds = seconds
        self._embedded: EmbeddedServer | None = None

    def findings(self) -> Generator[Finding, None, None]:
        """Run the checks. Each of :data:`CHECKS` comes once, in their order."""
        done: set[str] = set()
        failed = ""
        for finding in self._guarded():
            done.add(finding.check)
            if finding.status is Status.FAILURE:
                failed = finding.check
            yield finding
        for name in CHECKS:
            if name not in done:
                yield Finding(name, Status.SKIPPED, f"not checked, since {failed or 'another check'} failed")

    def close(self) -> None:
        """Stop the embedded server, if there is one."""
        if self._embedded is not None:
            self._embedded.stop()

    def _guarded(self) -> Iterator[Finding]:
        """The checks up to the first that cannot be passed by."""
        checks = self._checks()
        last = ""
        while True:
            try:
                finding = next(checks)
            except StopIteration:
                return
            except Exception as error:  # whatever a server sends, the doctor says what it found
                following = CHECKS[CHECKS.index(last) + 1] if last in CHECKS[:-1] else CHECKS[-1]
                text = f"the check failed: {type(error).__name__}: {error}"[:300]
                yield Finding(following, Status.FAILURE, text, "the server's answer is not one that this client knows")
                return
            last = finding.check
            yield finding

    def _checks(self) -> Iterator[Finding]:
        yield machine.check_client()
        finding, address = self._find_url()
        yield finding
        if address is None:
            return
        for check in (places.reach, places.check_tls):
            finding = check(address, self._seconds)
            yield finding
            if finding.status is Status.FAILURE:
                return
        asker = Asker(address, self._key, self._seconds)
        try:
            yield from self._served(asker)
        finally:
            asker.close()

    def _find_url(self) -> tuple[Finding, places.Address | None]:
        if self._url:
            return places.read(self._url, self._source)
        if (missing := machine.check_installation()) is not None:
            return missing, None
        note = ""
        if places.listens_locally(min(self._seconds, 1.0)):
            host, port = places.LOCAL
            note = f"; something listens at http://{host}:{port}, set GRADWIRE_URL to use it"
        try:
            self._embedded = within(STARTING_S, EmbeddedServer)
        except (TookTooLong, GradwireError, OSError, ValueError) as error:
            text = f"the embedded server does not start: {error}"
            return Finding("url", Status.FAILURE, text, "run gradwire-server to see why, or set GRADWIRE_URL"), None
        self._key, self._key_source = self._embedded.api_key, "embedded"
        self.secrets.append(self._key)
        found = places.read(self._embedded.url, "embedded")[1]
        text = f"GRADWIRE_URL is not set: programs start an embedded server{note}"
        facts = {"url": self._embedded.url, "source": "embedded", "proxy": ""}
        return Finding("url", Status.OK, text, facts=facts), found

    def _served(self, asker: Asker) -> Iterator[Finding]:
        finding = answering.check_server(asker)
        yield finding
        if finding.status is Status.FAILURE:
            return
        yield answering.check_clock(asker)
        yield answering.check_latency(asker)
        finding, version = answering.check_key(asker, self._key_source)
        yield finding
        if version is None:
            return
        yield answering.check_versions(version)
        told = _told(lambda: asker.get("/v1/diagnostics"))
        yield from self._computed(asker, told)
        yield from self._about_machine(asker, told)

    def _computed(self, asker: Asker, told: dict[str, Any] | None) -> Iterator[Finding]:
        finding, session = computing.open_session(asker)
        try:
            yield finding
            if not session:
                for name in ("stream", "bandwidth"):
                    yield Finding(name, Status.SKIPPED, "not checked without a session")
                return
            yield computing.check_stream(asker, session)
            yield computing.check_bandwidth(asker, session, {} if told is None else told["limits"])
        finally:
            if session:
                computing.end_session(asker, session)

    def _about_machine(self, asker: Asker, told: dict[str, Any] | None) -> Iterator[Finding]:
        devices = asker.get("/v1/devices")["devices"]
        yield machine.check_devices(devices)
        if told is None:
            for name in ("gpu", "kernels", "disk", "limits"):
                yield Finding(name, Status.SKIPPED, _TOO_OLD)
            return
        embedded = self._embedded is not None
        yield machine.check_gpu(told["cuda"], devices, embedded)
        yield machine.check_kernels(told["kernels"], told["libraries"])
        yield machine.check_disk(told["storage"], told["limits"], embedded)
        yield answering.check_limits(told)


def _told(ask: Callable[[], Any]) -> dict[str, Any] | None:
    """An answer, or ``None`` from a server that does not have the route or does not answer it."""
    try:
        found: dict[str, Any] = ask()
    except (Unanswered, GradwireError):
        return None
    return found
