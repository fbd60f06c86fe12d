"""What /metrics tells, one row a metric, in the registry of one application."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0)


class Metrics:
    """The server's counters. Everything of the client's choosing, such as ids, stays out of the labels."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"gradwire_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"gradwire_{name}", text, registry=registry)

        def seconds(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"gradwire_{name}", text, labels, registry=registry, buckets=_SECONDS)

        frames = counter("frames_total", "Frames, by what became of them", "outcome")
        self.results = counter("results_total", "Tensors that frames made")
        self.frame_seconds = seconds("frame_seconds", "Time a frame took in the engine")
        self.wait_seconds = seconds("frame_wait_seconds", "Time a frame waited for the engine")
        bytes_in = counter("received_bytes_total", "Bytes of messages, frames and tensors received", "via")
        bytes_out = counter("sent_bytes_total", "Bytes of messages, replies and tensors sent", "via")
        self.requests = counter("http_requests_total", "Requests and streams", "method", "route", "status")
        self.request_seconds = seconds("http_request_seconds", "Time from request to response", "method", "route")
        self.errors = counter("errors_total", "Errors told to clients, by code", "code")
        self.sessions = gauge("sessions", "Live sessions")
        self.streams = gauge("streams", "Open streams")
        # Looking a child up by its labels takes longer than counting: what every frame counts is looked up here.
        self.frames_applied, self.frames_refused = frames.labels("applied"), frames.labels("refused")
        self.stream_in, self.stream_out = bytes_in.labels("stream"), bytes_out.labels("stream")
        self.rest_in, self.rest_out = bytes_in.labels("rest"), bytes_out.labels("rest")
        self.session_ends = counter("session_ends_total", "Sessions that ended, by reason", "reason")

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
