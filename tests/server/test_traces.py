"""Spans of requests and frames, by OpenTelemetry's SDK with its exporter in memory; and the ids in logs and errors."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest
import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

import gradwire
from gradwire._core.context.trace_context import traceparent
from gradwire_server import app as application
from gradwire_server.observability.metrics import Metrics
from gradwire_server.observability.tracing import Tracing, TracingUnavailable, open_tracing
from gradwire_server.settings.settings import Settings
from tests.live_server import API_KEY, SOURCES, LiveServer, live_server

ADDITION = {"ops": [["full", [[2], "float"]], ["add", [0, 0, "int"]]], "reads": [1]}
PATIENCE_S = 120
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Traced:
    """A server that traces into memory."""

    def __init__(self, server: LiveServer, exporter: InMemorySpanExporter) -> None:
        self.server = server
        self.exporter = exporter

    def spans(self, name: str, count: int = 1) -> list[ReadableSpan]:
        """The spans of this name, once there are so many: a span ends a moment after its answer."""
        until = time.monotonic() + PATIENCE_S
        while True:
            found = [span for span in self.exporter.get_finished_spans() if span.name == name]
            if len(found) >= count or time.monotonic() > until:
                return found
            time.sleep(0.005)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    exporter = InMemorySpanExporter()

    def opened(settings: Settings, metrics: Metrics) -> Tracing:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return Tracing(provider, metrics)

    monkeypatch.setattr(application, "open_tracing", opened)
    with live_server() as server:
        yield Traced(server, exporter)


def test_a_request_has_a_span_below_the_one_of_its_client(traced: Traced) -> None:
    with traced.server.http() as http:
        http.post("/v1/sessions", json={}, headers={"traceparent": f"00-{TRACE}-{SPAN}-01", "X-Request-ID": "mine"})
    (span,) = traced.spans("POST /v1/sessions")
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == SPAN
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 201
    assert span.attributes["gradwire.request_id"] == "mine"


def test_a_frame_over_rest_has_a_span_below_its_request(traced: Traced) -> None:
    with traced.server.http() as http:
        session = http.post("/v1/sessions", json={}).json()["id"]
        body = {"structure": ADDITION, "scalars": [1.5, 1]}
        assert http.post(f"/v1/sessions/{session}/frames", json=body).status_code == 200
    (request,) = traced.spans("POST /v1/sessions/{session_id}/frames")
    (frame,) = traced.spans("frame")
    assert frame.parent is not None
    assert frame.parent.span_id == request.context.span_id
    assert frame.attributes is not None
    told = {name.removeprefix("gradwire."): value for name, value in frame.attributes.items()}
    assert (told["ops"], told["results"], told["reads"], told["errors"]) == (2, 2, 1, 0)
    assert told["session"] == session
    assert told["waited_ms"] >= 0
    assert told["took_ms"] > 0


def test_frames_of_a_stream_are_in_the_trace_of_their_program(traced: Traced) -> None:
    program = TracerProvider(shutdown_on_exit=False).get_tracer("a program")
    with program.start_as_current_span("training") as span:
        with gradwire.open_session(traced.server.url, API_KEY) as session:
            session.synchronize()
    frames = traced.spans("frame")
    assert frames
    assert {frame.context.trace_id for frame in frames} == {span.get_span_context().trace_id}
    created = traced.spans("POST /v1/sessions")
    assert created[0].context.trace_id == span.get_span_context().trace_id


def test_a_frame_that_fails_says_so_and_tells_no_values(traced: Traced) -> None:
    with traced.server.http() as http:
        session = http.post("/v1/sessions", json={}).json()["id"]
        body = {"structure": {"ops": [["full", [[2], "float"]], ["view", [0, [123456789]]]]}, "scalars": [987654321.5]}
        assert http.post(f"/v1/sessions/{session}/frames", json=body).status_code == 200
    (frame,) = traced.spans("frame")
    assert not frame.status.is_ok
    assert frame.attributes is not None
    assert "error.type" in frame.attributes
    told = " ".join(f"{name}={value}" for span in traced.exporter.get_finished_spans()
                    for name, value in (span.attributes or {}).items())  # fmt: skip
    assert "987654321" not in told
    assert API_KEY not in told


def test_what_a_client_does_not_sample_is_not_kept() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider, Metrics())
    for flags, kept in (("00", 0), ("01", 1)):
        scope = {
            "type": "http", "method": "GET", "headers": [(b"traceparent", f"00-{TRACE}-{SPAN}-{flags}".encode())],
            "state": {"status": 200},
        }  # fmt: skip
        with tracing.request(scope):
            pass
        assert len(exporter.get_finished_spans()) == kept


@pytest.mark.parametrize("header", ["", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x" * 100_000])
def test_a_traceparent_that_is_none_begins_a_trace(header: str) -> None:
    tracing = Tracing(TracerProvider(shutdown_on_exit=False), Metrics())
    assert not trace.get_current_span(tracing.parent(header)).get_span_context().is_valid


def test_a_server_without_an_endpoint_imports_neither_sdk_nor_exporter() -> None:
    """FastAPI looks for OpenTelemetry's interface itself, and takes it along where it is installed."""
    program = (
        "import sys; from gradwire_server.app import create_app; "
        "from gradwire_server.settings.settings import Settings; "
        "create_app(Settings(api_keys=('a key',))); import gradwire; "
        "print([m for m in sys.modules if m.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": SOURCES}, capture_output=True, text=True, timeout=400
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_settings_open_an_exporter_with_the_ratio_they_name() -> None:
    tracing = open_tracing(
        Settings(api_keys=("a key",), trace_endpoint="http://127.0.0.1:9/v1/traces", trace_ratio=0.0), Metrics()
    )
    assert tracing is not None
    try:
        with tracing.request({"type": "http", "method": "GET", "headers": [], "state": {}}):
            assert not trace.get_current_span().is_recording()
    finally:
        tracing.close()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(TracingUnavailable, match=r"GRADWIRE_TRACE_ENDPOINT.*gradwire\[otel\]"):
        open_tracing(Settings(api_keys=("a key",), trace_endpoint="http://127.0.0.1:9/v1/traces"), Metrics())


def test_a_program_without_a_span_has_no_traceparent() -> None:
    assert traceparent() == ""


# Ids


def test_every_line_of_a_request_in_the_log_has_its_id_and_whose_it_is() -> None:
    lines: list[dict] = []

    def keep(logger: object, method: str, event: dict) -> dict:
        lines.append(dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    try:
        with live_server(log_level="info") as server:
            structlog.configure(processors=[structlog.contextvars.merge_contextvars, keep])
            with server.http() as http:
                http.post("/v1/sessions", json={}, headers={"X-Request-ID": "first"})
        # Only now: a request's last line comes after its answer, and a server that has stopped has no more to tell.
    finally:
        structlog.configure(**before)
    mine = [line for line in lines if line.get("request_id") == "first"]
    assert {"request", "session created"} <= {line["event"] for line in mine}
    assert all(line.get("tenant") for line in mine)
    assert API_KEY not in str(lines)


def test_errors_of_a_stream_carry_its_id() -> None:
    with live_server() as server, gradwire.open_session(server.url, API_KEY) as session:
        from gradwire_protocol.table import TABLE

        session.record(TABLE["by_name"], ["nobody"], 1)
        with pytest.raises(gradwire.GradwireError) as caught:
            session.synchronize()
    assert len(caught.value.details["request_id"]) == 16


def test_a_request_that_failed_names_the_id_that_it_came_with() -> None:
    with live_server() as server, server.http() as http:
        response = http.get("/v1/sessions/s_none", headers={"X-Request-ID": "find-me"})
    assert isinstance(response, httpx.Response)
    assert response.json()["request_id"] == "find-me"
