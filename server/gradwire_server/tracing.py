"""Traces by OpenTelemetry: a span for each REST request and for each frame. Needs the extra ``gradwire[otel]``.

Nothing of OpenTelemetry is imported unless ``GRADWIRE_TRACE_ENDPOINT`` is set, and then nothing waits for it: spans
are sent from a thread of its own. Attributes are counts and names from tables; neither data nor keys are among them.

A request's span hangs on its ``traceparent`` header. A frame's span hangs on its request, or on the ``trace`` that the
stream's client said hello with. Spans of frames are made when the reply is there, from the times in it: what the frame
waited and took is told by whoever ran it, in whichever process.
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

from .metrics import Metrics, families
from .settings import Settings, variable
from .version import VERSION

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

SERVICE: Final = "gradwire"
LONGEST_TRACEPARENT: Final = 256

_from_msgpack = msgspec.msgpack.Decoder(Structure)
_from_json = msgspec.json.Decoder(Structure)


class TracingUnavailable(RuntimeError):
    """Tracing is configured, and the extra that it needs is not installed."""


class Tracing:
    """Makes the spans of one server.

    Args:
        provider: of OpenTelemetry's SDK; it decides where spans go and which of them are kept.
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
        """The span of a REST request, while it is answered. A stream's frames have spans of their own."""
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
        """What a ``traceparent`` names, to be the parent of spans; what is none leads to traces of their own."""
        return self._propagator.extract({"traceparent": traceparent[:LONGEST_TRACEPARENT]}, context=_nothing())

    def current(self) -> Context:
        """The span that is active, to be the parent of others."""
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
        """The span of a frame that was answered.

        Args:
            received: when it came, by ``perf_counter_ns``.
            size: bytes of its message; ``sent`` those of the values.
        """
        now, clock = time.time_ns(), time.perf_counter_ns()
        span = self._tracer.start_span(
            "frame", parent, self._trace.SpanKind.SERVER, start_time=now - (clock - received)
        )  # fmt: skip
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
            except (msgspec.MsgspecError, UnicodeError, RecursionError):  # refused for it, too
                return 0
        return sum(known.values())

    def close(self) -> None:
        """Send what is left."""
        self.provider.shutdown()


def _nothing() -> Context:
    from opentelemetry.context import Context

    return Context()


def open_tracing(settings: Settings, metrics: Metrics) -> Tracing | None:
    """Tracing as the settings have it; ``None`` where they have none, and then nothing is imported.

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
            f"{variable('trace_endpoint')} is set, but {error.name} is not installed: pip install 'gradwire[otel]'"
        ) from None
    provider = TracerProvider(
        resource=Resource.create({SERVICE_NAME: SERVICE, SERVICE_VERSION: VERSION}),
        sampler=ParentBased(TraceIdRatioBased(settings.trace_ratio)),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.trace_endpoint)))
    return Tracing(provider, metrics)
