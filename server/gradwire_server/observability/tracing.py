"""OpenTelemetry traces: a span for each REST request and each frame. Needs the extra ``gradwire[otel]``.

The server imports OpenTelemetry only if ``GRADWIRE_TRACE_ENDPOINT`` is set. A separate thread exports spans, so nothing
waits for it. Attributes are counts and names from tables, never data or keys.

The parent of a request's span is its ``traceparent`` header. The parent of a frame's span is its request, or the
``trace`` in the hello of the stream. A frame's span is created after its reply, from the times in the reply, which come
from the process that ran the frame.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.types import Scope

from gradwire_protocol.frames import Frame, Reply, Structure

from ..settings.settings import Settings, variable
from ..settings.version import VERSION
from .metrics import Metrics, families

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

SERVICE: Final = "gradwire"
LONGEST_TRACEPARENT: Final = 256

_from_msgpack = msgspec.msgpack.Decoder(Structure)
_from_json = msgspec.json.Decoder(Structure)


class TracingUnavailable(RuntimeError):
    """Tracing is configured, but the required extra is not installed."""


class Tracing:
    """Creates the spans of one server.

    Args:
        provider: the SDK's provider, which samples and exports spans.
    """

    def __init__(self, provider: TracerProvider, metrics: Metrics) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.provider = provider
        self.metrics = metrics
        self._trace = trace
        self._tracer = provider.get_tracer("gradwire_server", VERSION)
        self._propagator = TraceContextTextMapPropagator()

    # Requests

    @contextmanager
    def request(self, scope: Scope) -> Iterator[None]:
        """The span of a REST request. A stream has no span; its frames have."""
        if scope["type"] != "http":
            yield
            return
        trace = self._trace
        parent = self.parent(Headers(scope=scope).get("traceparent", ""))
        with self._tracer.start_as_current_span(scope["method"], parent, trace.SpanKind.SERVER) as span:
            try:
                yield
            finally:
                if span.is_recording():
                    self._describe(span, scope)

    def _describe(self, span: Any, scope: Scope) -> None:
        state = scope["state"]
        route = getattr(scope.get("route"), "path", "")
        span.update_name(f"{scope['method']} {route}".strip())
        span.set_attribute("http.request.method", scope["method"])
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", state.get("status", 0))
        span.set_attribute("gradwire.request_id", state.get("request_id", ""))
        session = (scope.get("path_params") or {}).get("session_id")
        if session:
            span.set_attribute("gradwire.session", str(session)[:80])
        if code := state.get("problem"):
            span.set_attribute("error.type", code)
        if state.get("status", 0) >= 500:
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))

    # Frames

    def parent(self, traceparent: str) -> Context:
        """The parent context of a ``traceparent``; an invalid one starts a new trace."""
        return self._propagator.extract({"traceparent": traceparent[:LONGEST_TRACEPARENT]}, context=_nothing())

    def current(self) -> Context:
        """The active span as a parent context."""
        from opentelemetry import context

        return context.get_current()

    def frame(
        self,
        parent: Context,
        session: str,
        frame: Frame,
        human: bool,
        received: int,
        size: int,
        sent: int,
        reply: Reply,
    ) -> None:
        """Create the span of an answered frame.

        Args:
            received: its time of arrival by ``perf_counter_ns``.
            size: the bytes of its message.
            sent: the bytes of the returned values.
        """
        now, clock = time.time_ns(), time.perf_counter_ns()
        span = self._tracer.start_span(
            "frame", parent, self._trace.SpanKind.SERVER, start_time=now - (clock - received)
        )
        if span.is_recording():
            timing = reply.timing
            span.set_attributes({
                "gradwire.session": session, "gradwire.client": frame.client, "gradwire.frame": reply.seq,
                "gradwire.ops": self._ops(frame, human), "gradwire.results": reply.made,
                "gradwire.reads": len(reply.values), "gradwire.bytes.received": size,
                "gradwire.bytes.sent": sent, "gradwire.errors": len(reply.errors),
            })  # fmt: skip
            if timing is not None:
                span.set_attribute("gradwire.waited_ms", (timing.started - timing.received) / 1e6)
                span.set_attribute("gradwire.took_ms", (timing.finished - timing.started) / 1e6)
                if timing.committed:
                    span.set_attribute("gradwire.commit_ms", (timing.committed - timing.finished) / 1e6)
            problem = reply.refused or (reply.errors[0] if reply.errors else None)
            if problem is not None:
                span.set_attribute("error.type", problem.code)
                span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end(now)

    def _ops(self, frame: Frame, human: bool) -> int:
        known = self.metrics.op_counts.of(frame.hash)
        if known is None:
            try:
                known = families((_from_json if human else _from_msgpack).decode(bytes(frame.structure)))
            except (msgspec.MsgspecError, UnicodeError, RecursionError):  # the frame was refused
                return 0
        return sum(known.values())

    def close(self) -> None:
        """Export the remaining spans."""
        self.provider.shutdown()


def _nothing() -> Context:
    from opentelemetry.context import Context

    return Context()


def open_tracing(settings: Settings, metrics: Metrics) -> Tracing | None:
    """Tracing by the settings; ``None``, without imports, if it is off.

    Raises:
        TracingUnavailable: when the extra is not installed.
    """
    if not settings.trace_endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ModuleNotFoundError as error:
        raise TracingUnavailable(
            f"{variable('trace_endpoint')} is set, but {error.name} is not installed; run pip install 'gradwire[otel]'"
        ) from None
    provider = TracerProvider(
        resource=Resource.create({SERVICE_NAME: SERVICE, SERVICE_VERSION: VERSION}),
        sampler=ParentBased(TraceIdRatioBased(settings.trace_ratio)),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.trace_endpoint)))
    return Tracing(provider, metrics)
