"""What ``GET /v1/activity`` answers, made up: any number of sessions, on a machine with a GPU, quotas in use."""

from __future__ import annotations

from typing import Any


def session(number: int, **more: Any) -> dict[str, Any]:
    """A session; the higher its number, the more of everything it has."""
    return {
        "id": f"s_{number:04d}abcdefghijkl", "name": f"run {number}", "tenant": "alice", "device": "cuda:0",
        "durability": "none", "state": "busy" if number % 2 else "idle", "created_at": "2026-11-28T03:40:00.000Z",
        "age_s": 60.0 * number, "idle_s": 0.0, "expires_in_s": 3600.0, "streams": 1, "pending_frames": number % 3,
        "memory": {"live_bytes": number << 20, "saved_bytes": number << 18, "pooled_bytes": 0, "peak_bytes": 1,
                   "limit_bytes": 8 << 30},
        "frames_per_second": 1.5 * number, "ops_per_second": 100.0 * number, "busy": 0.5, "frames": 10,
        "ops": 100 * number, "planned_frames": 8, "errors": number % 2,
        "last_error": {"at": "2026-11-28T03:40:00.000Z", "code": "shape_mismatch", "op": "matmul",
                       "detail": "shapes [2, 3] and [4, 5] cannot be multiplied"} if number % 2 else None,
    } | more  # fmt: skip


def activity(count: int, everybody: bool = True, **more: Any) -> dict[str, Any]:
    """The activity of a server with so many sessions, in the form of ``GET /v1/activity``."""
    return {
        "at": "2026-11-28T03:40:00.000Z", "version": "0.1.0", "uptime_s": 10_920.0, "session_host": "process",
        "draining": False,
        "caller": {"key": "k_1", "name": "me", "tenant": "alice", "scopes": ["admin"], "all": everybody},
        "totals": {"sessions": count, "loaded": count, "busy": count // 2, "streams": count,
                   "frames_per_second": 1234.5, "ops_per_second": 2_100_000.0, "live_bytes": count << 20,
                   "saved_bytes": count << 18, "pooled_bytes": 3 << 20, "errors": 7},
        "queue": {"slots": 2, "computing": 1, "waiting": 3, "pending_frames": 5},
        "devices": [
            {"name": "cpu", "model": "x86_64", "total_bytes": 64 << 30, "free_bytes": 32 << 30, "capability": None,
             "multiprocessors": 16},
            {"name": "cuda:0", "model": "NVIDIA H100 80GB HBM3", "total_bytes": 80 << 30, "free_bytes": 10 << 30,
             "capability": [9, 0], "multiprocessors": 132},
        ],
        "workers": [{"id": "1", "state": "busy", "sessions": 1, "calls": 0},
                    {"id": "2", "state": "spare", "sessions": 0, "calls": 0}],
        "quotas": [{"key": "k_1", "name": "me", "tenant": "alice", "quota": "max_ops_per_second", "used": 900.0,
                    "limit": 1000}],
        "sessions": [session(number) for number in range(1, count + 1)],
    } | more  # fmt: skip
