"""What the devices of this machine are, for clients that ask."""

from __future__ import annotations

import os
import platform
from typing import Any, Final

from .backends import cuda_device_count

PROBLEM_CHARS: Final = 300
"""Of the text of an error that is reported to clients."""


def describe_devices() -> list[dict[str, Any]]:
    """One row a device, the CPU first: its name here, the model, bytes in all and free, and for a GPU the compute
    capability and the number of multiprocessors."""
    return [_cpu(), *(_gpu(index) for index in range(cuda_device_count()))]


def describe_cuda() -> dict[str, Any]:
    """What GPUs need: the versions of CuPy, of the CUDA that the driver supports and of the CUDA runtime in use, each
    None where it is missing, and in ``problem`` why CuPy finds no device, or nothing."""
    found: dict[str, Any] = {"cupy": None, "driver": None, "runtime": None, "problem": ""}
    try:
        import cupy
    except ImportError as error:
        # A library of CUDA that is missing is an ImportError too; only CuPy itself may be left out.
        found["problem"] = "" if isinstance(error, ModuleNotFoundError) and error.name == "cupy" else _first_line(error)
        return found
    found["cupy"] = cupy.__version__
    runtime = cupy.cuda.runtime
    try:
        found["driver"] = _cuda_version(runtime.driverGetVersion())
        found["runtime"] = _cuda_version(runtime.runtimeGetVersion())
        runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own runtime error when there is no driver
        if type(error).__name__ != "CUDARuntimeError":
            raise
        found["problem"] = _first_line(error)
    return found


def _cuda_version(number: int) -> str | None:
    """``12.4`` for 12040; None for 0, which CUDA says where there is no driver."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:PROBLEM_CHARS]


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
