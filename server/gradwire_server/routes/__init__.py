"""The REST routes and the stream, one module per resource."""

from . import (
    activity,
    console,
    diagnostics,
    docs,
    exports,
    frames,
    gradients,
    graph,
    groups,
    health,
    history,
    keys,
    manual,
    names,
    ops,
    profile,
    sessions,
    stream,
    tensors,
    tickets,
)

ROUTERS = (
    health.router, diagnostics.router, sessions.router, frames.router, tensors.router, names.router, gradients.router,
    graph.router, groups.router, ops.router, stream.router, exports.router, history.router, keys.router, tickets.router,
    docs.router, activity.router, profile.router, console.root, manual.router,
)  # fmt: skip

__all__ = [
    "ROUTERS", "activity", "console", "diagnostics", "docs", "exports", "frames", "gradients", "graph", "groups",
    "health", "history", "keys", "manual", "names", "ops", "profile", "sessions", "stream", "tensors", "tickets",
]  # fmt: skip
