"""The memory figures of ``torch.cuda``: those of the session, which counts all its devices together.

What lies on the CPU of the server counts as well; a program that uses a GPU has little there. Each figure costs one
round trip, and is zero where the server has no GPU.
"""

from __future__ import annotations

from .._core.context.argument_types import Device
from .._core.session.current_session import current_session
from .._core.surface.server_devices import facts, gpu_count, held


def memory_allocated(device: Device = None) -> int:
    """Bytes that the session's tensors and graph hold."""
    return held()["live_bytes"]


def max_memory_allocated(device: Device = None) -> int:
    """The most that :func:`memory_allocated` would have told since the session began, or since the last reset."""
    return held()["peak_bytes"]


def memory_reserved(device: Device = None) -> int:
    """Bytes that the session's tensors hold, and those that the server keeps in reserve for tensors to come."""
    found = held()
    return found["live_bytes"] + found["pooled_bytes"]


def max_memory_reserved(device: Device = None) -> int:
    """The largest of the peak of what was held and of what is reserved now."""
    found = held()
    return max(found["peak_bytes"], found["live_bytes"] + found["pooled_bytes"])


def reset_peak_memory_stats(device: Device = None) -> None:
    """Let the peak be what is held once everything recorded so far is done."""
    if gpu_count():
        current_session().reset_peak_memory()


reset_max_memory_allocated = reset_peak_memory_stats


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free bytes and all bytes of a GPU, whoever uses them.

    Raises:
        DeviceError: when the server has no such GPU.
    """
    found = facts(device)
    return int(found["free_bytes"]), int(found["total_bytes"])


def memory_stats(device: Device = None) -> dict[str, int]:
    """The figures that gradwire has, under PyTorch's names."""
    found = held()
    reserved = found["live_bytes"] + found["pooled_bytes"]
    return {
        "allocated_bytes.all.current": found["live_bytes"],
        "allocated_bytes.all.peak": found["peak_bytes"],
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": max(found["peak_bytes"], reserved),
    }


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The figures as a small table."""
    rows = memory_stats(device)
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {count:>16,} bytes" for name, count in rows.items())


def empty_cache() -> None:
    """Send what was recorded, so that what the program has dropped is released. The server gives memory that nobody
    uses back to its system on its own."""
    if gpu_count():
        current_session().flush()


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Refused: the limits of a session are the server's settings.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "set_per_process_memory_fraction: what a session may hold is set on the server (GRADWIRE_MAX_SESSION_BYTES)"
    )
