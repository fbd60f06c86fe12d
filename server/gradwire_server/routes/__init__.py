"""The REST routes and the stream, one module per resource."""

from . import (
    docs,
    exports,
    frames,
    gradients,
    graph,
    groups,
    health,
    history,
    keys,
    names,
    ops,
    sessions,
    stream,
    tensors,
    tickets,
)

ROUTERS = (
    health.router, sessions.router, frames.router, tensors.router, names.router, gradients.router, graph.router,
    groups.router, ops.router, stream.router, exports.router, history.router, keys.router, tickets.router, docs.router,
)  # fmt: skip

__all__ = [
    "ROUTERS", "docs", "exports", "frames", "gradients", "graph", "groups", "health", "history", "keys", "names",
    "ops", "sessions", "stream", "tensors", "tickets",
]  # fmt: skip
