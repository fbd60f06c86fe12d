"""A training step for profiles, and the lanes of its trace."""

from __future__ import annotations

from typing import Any

import gradwire


def operands() -> tuple[Any, Any]:
    """Of :func:`step`."""
    return gradwire.randn(4, 8), gradwire.randn(8, 8, requires_grad=True)


def step(x: Any, w: Any) -> Any:
    loss = (x @ w).relu().sum()
    loss.backward()
    return loss


def lanes(trace: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Stretches by process and thread name: ``ts`` and ``end`` in microseconds, exact to the nanosecond."""
    events = trace["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    begun: dict[tuple[str, Any], dict[str, Any]] = {}
    for event in events:
        if event["ph"] == "b":
            begun[event["cat"], event["id"]] = event
            continue
        if event["ph"] == "X":
            stretch = event | {"end": round(event["ts"] + event["dur"], 3)}
        elif event["ph"] == "e":
            stretch = begun.pop((event["cat"], event["id"])) | {"end": event["ts"]}
        else:
            continue
        found.setdefault((processes[event["pid"]], threads[event["pid"], event["tid"]]), []).append(stretch)
    assert not begun, "every stretch that begins ends"
    return found
