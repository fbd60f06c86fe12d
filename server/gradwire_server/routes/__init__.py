"""The REST routes and the stream, one module a resource."""

from . import frames, gradients, graph, health, ops, sessions, stream, tensors

ROUTERS = (
    health.router, sessions.router, frames.router, tensors.router, gradients.router, graph.router, ops.router,
    stream.router,
)  # fmt: skip

__all__ = ["ROUTERS", "frames", "gradients", "graph", "health", "ops", "sessions", "stream", "tensors"]
