"""``torch.utils.data._utils.worker``: what a worker knows of itself."""

from __future__ import annotations

import random
from typing import Any

from ..workers import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits that differ from worker to worker, for NumPy's seed."""
    drawn = random.Random(f"{base_seed}:{worker_id}")
    return [drawn.getrandbits(32) for _ in range(4)]


def __getattr__(name: str) -> Any:
    if name == "_worker_info":
        return get_worker_info()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
