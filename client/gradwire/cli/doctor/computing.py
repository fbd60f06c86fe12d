"""Whether a session opens, computes a gradient and takes a stream, and how fast data travels; then it is deleted."""

from __future__ import annotations

import math
import os
import secrets
import time
from typing import Any, Final

import httpx

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import PROTOCOL_VERSION, Hello

from ..._core.context.version import __version__
from ..._core.wire.dialer import Dialer
from ..._core.wire.rest import problem_error
from ..sizes import bytes_text, seconds_text
from .answering import Asker, Unanswered
from .findings import Finding, Status
from .patience import TookTooLong, within

SESSION_TTL_S: Final = 120
"""The session expires after this long if the doctor is killed before it deletes it."""
OPENING_S: Final = 30.0
"""How long a new session may take: a fleet may have to start a worker."""
FRAME: Final = {
    "ops": [
        {"op": "upload", "data": [1.0, 2.0, 3.0], "as": "x"},
        {"op": "requires_grad_", "self": "x"},
        {"op": "mul", "self": "x", "other": "x", "as": "squares"},
        {"op": "sum", "self": "squares", "as": "y"},
        {"op": "backward", "tensors": ["y"]},
        {"op": "grad_of", "self": "x", "as": "gradient"},
    ],
    "reads": ["gradient"],
}
GRADIENT: Final = [2.0, 4.0, 6.0]

FIRST_BYTES: Final = 256 << 10
MOST_BYTES: Final = 64 << 20
MEASURED_S: Final = 1.0
"""About how long each direction is measured."""
SLOW_BYTES: Final = 1 << 20
"""A rate below which a warning is given, in bytes per second."""


def open_session(asker: Asker) -> tuple[Finding, str]:
    """Open a session and compute a gradient; with the session's id, which is empty if there is none."""
    try:
        response = asker.ask(
            "POST", "/v1/sessions", json={"ttl_s": SESSION_TTL_S}, seconds=max(asker.seconds, OPENING_S),
            headers={"Idempotency-Key": secrets.token_urlsafe(18)},
        )  # fmt: skip
        if not response.is_success:
            return _refused(problem_error(response)), ""
        session = str(response.json()["id"])
    except Unanswered as error:
        return Finding("session", Status.FAILURE, f"opening one: {error}", "look at the server's log"), ""
    began = time.perf_counter()
    try:
        response = asker.ask("POST", f"/v1/sessions/{session}/frames", json=FRAME)
        if not response.is_success:
            return _refused(problem_error(response)), session
        answer = response.json()
    except Unanswered as error:
        return Finding("session", Status.FAILURE, f"computing a gradient: {error}", "look at the server's log"), session
    took = time.perf_counter() - began
    try:
        right = answer["values"][0]["values"] == GRADIENT
    except (KeyError, IndexError, TypeError):
        right = False
    if not right:
        text = f"a small gradient is wrong or missing: {answer.get('errors') or answer.get('values')!r:.200}"
        return Finding("session", Status.FAILURE, text, "report this: it is a bug of the server"), session
    text = f"opened; a gradient was computed in {seconds_text(took)}"
    return Finding("session", Status.OK, text, facts={"gradient_ms": round(took * 1e3, 3)}), session


def _refused(error: GradwireError) -> Finding:
    facts = {"code": error.code}
    if error.code == "forbidden":
        advice = "programs need a key with the scope session: gradwire keys create --name NAME"
        return Finding("session", Status.WARNING, error.message, advice, facts)
    advice = {
        "too_many_requests": "gradwire sessions ls lists yours, gradwire sessions kill ID ends one",
        "limit_exceeded": "gradwire sessions ls lists yours, gradwire sessions kill ID ends one",
        "unavailable": "try again later, or ask the operator",
    }.get(error.code, "look at the server's log")
    return Finding("session", Status.FAILURE, f"{error.code}: {error.message}", advice, facts)


def check_stream(asker: Asker, session: str) -> Finding:
    """Open the WebSocket that programs use."""
    hello = Hello(
        version=PROTOCOL_VERSION, agent=f"gradwire-doctor/{__version__}", instance=secrets.token_hex(8),
    )  # fmt: skip
    seconds = max(asker.seconds, OPENING_S) if asker.seconds >= 1 else asker.seconds
    facts: dict[str, Any] = {}
    began = time.perf_counter()

    def dial() -> tuple[bool, float]:
        dialer = Dialer(asker.address.url, session, asker.key, heartbeat=seconds, spin=0.0)
        connection = dialer.dial(hello, waiting=False)
        took = time.perf_counter() - began
        connection.close()
        return connection.direct, took

    try:
        direct, took = within(seconds, dial)
    except (TookTooLong, OSError, GradwireError) as error:
        text = f"no WebSocket opens: {error.message if isinstance(error, GradwireError) else error}"
        advice = "a proxy on the way must pass WebSockets (Upgrade and Connection): docs/deploying.md"
        return Finding("stream", Status.FAILURE, text, advice, facts)
    facts |= {"direct": direct, "opened_ms": round(took * 1e3, 3)}
    way = ", directly to the worker" if direct else ""
    return Finding("stream", Status.OK, f"a WebSocket opened in {seconds_text(took)}{way}", facts=facts)


def check_bandwidth(asker: Asker, session: str, limits: dict[str, int]) -> Finding:
    """Send random bytes to the session and fetch them back, for about a second each way."""
    path = f"/v1/sessions/{session}/names/doctor"
    most = min(
        MOST_BYTES, *(limits[name] for name in ("max_body_bytes", "max_tensor_bytes", "max_read_bytes")
                      if limits.get(name))
    )  # fmt: skip
    patience = asker.seconds + 4 * MEASURED_S
    try:
        size, took = min(FIRST_BYTES, most), 0.0
        while True:
            took = _upload(asker, path, size, patience)
            if took >= MEASURED_S / 4 or size >= most:
                break
            size = min(most, _rounded(size * min(16.0, MEASURED_S / max(took, 1e-4))))
        up = size / took
        down, count = _download(asker, path, patience, size)
    except Unanswered as error:
        advice = "the connection carries small requests only: look for a proxy or firewall that limits bodies"
        return Finding("bandwidth", Status.FAILURE, f"sending {bytes_text(size)}: {error}", advice)
    except GradwireError as error:
        text = f"not measured: {error.code}: {error.message}"
        return Finding("bandwidth", Status.WARNING, text, "the key's rates may be used up: try again later")
    facts = {"up_bytes_per_s": round(up), "down_bytes_per_s": round(count / down), "sample_bytes": size}
    text = f"up {bytes_text(up)}/s, down {bytes_text(count / down)}/s ({bytes_text(size)} each way)"
    if min(up, count / down) < SLOW_BYTES:
        advice = "keep data on the server: upload once, and let steps repeat there (docs/compiling.md)"
        return Finding("bandwidth", Status.WARNING, text, advice, facts)
    return Finding("bandwidth", Status.OK, text, facts=facts)


def _rounded(size: float) -> int:
    return 1 << max(10, math.floor(math.log2(size)))


def _upload(asker: Asker, path: str, size: int, seconds: float) -> float:
    body = os.urandom(size)  # bytes that no proxy can compress
    headers = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "uint8", "Gradwire-Shape": str(size)}
    name = f"{path}{size}"  # a name keeps its shape
    began = time.perf_counter()
    response = asker.ask("PUT", name, content=body, headers=headers, seconds=seconds)
    took = time.perf_counter() - began
    if not response.is_success:
        raise problem_error(response)
    return max(took, 1e-6)


def _download(asker: Asker, path: str, seconds: float, size: int) -> tuple[float, int]:
    headers = {"Accept": "application/octet-stream", "Accept-Encoding": "identity"}
    began = time.perf_counter()
    response: httpx.Response = asker.ask("GET", f"{path}{size}", headers=headers, seconds=seconds, most=2 * size + 1024)
    took = time.perf_counter() - began
    if not response.is_success:
        raise problem_error(response)
    return max(took, 1e-6), len(response.content)


def end_session(asker: Asker, session: str) -> None:
    """Delete the session; it expires anyway."""
    try:
        asker.ask("DELETE", f"/v1/sessions/{session}")
    except Unanswered:
        pass
