"""The machine and the versions of a run, without anything that identifies the machine's owner."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

PACKAGES: Final = ("gradwire", "torch", "numpy", "numba", "msgspec", "websockets", "uvicorn")


def facts() -> dict[str, Any]:
    """CPU, cores, memory, versions, and load."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": f"{_memory_gib():.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "numpy's BLAS": np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"],  # type: ignore[index]
        "load when it began": f"{os.getloadavg()[0]:.1f}",
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
