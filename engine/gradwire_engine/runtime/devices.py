"""What the devices of this machine are, for clients that ask."""

from __future__ import annotations

import os
import platform
from typing import Any

from .backends import cuda_device_count


def describe_devices() -> list[dict[str, Any]]:
    """One row a device, the CPU first: its name here, the model, bytes in all and free, and for a GPU the compute
    capability and the number of multiprocessors."""
    return [_cpu(), *(_gpu(index) for index in range(cuda_device_count()))]


def _cpu() -> dict[str, Any]:
    page, names = os.sysconf("SC_PAGE_SIZE"), os.sysconf_names
    total = os.sysconf("SC_PHYS_PAGES") * page if "SC_PHYS_PAGES" in names else 0
    free = os.sysconf("SC_AVPHYS_PAGES") * page if "SC_AVPHYS_PAGES" in names else 0
    return {
        "name": "cpu", "model": platform.processor() or platform.machine(), "total_bytes": total, "free_bytes": free,
        "capability": None, "multiprocessors": os.cpu_count() or 1,
    }  # fmt: skip


def _gpu(index: int) -> dict[str, Any]:
    import cupy

    facts = cupy.cuda.runtime.getDeviceProperties(index)
    with cupy.cuda.Device(index) as device:
        free, total = device.mem_info
    model = facts["name"]
    return {
        "name": f"cuda:{index}", "model": model.decode() if isinstance(model, bytes) else str(model),
        "total_bytes": int(total), "free_bytes": int(free), "capability": [int(facts["major"]), int(facts["minor"])],
        "multiprocessors": int(facts["multiProcessorCount"]),
    }  # fmt: skip
