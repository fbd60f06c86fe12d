"""``torch.accelerator``: the GPUs of the server, under names that do not say what they are."""

from __future__ import annotations

from types import ModuleType

from . import cpu, cuda
from ._core.context import size
from ._core.context.argument_types import Device
from ._core.context.default_device import PLACES
from ._core.surface.global_settings import get_default_device
from ._core.surface.server_devices import OnDevice, gpu_count, gpu_index, synchronize
from .cuda.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)
from .cuda.memory import mem_get_info as get_memory_info
from .cuda.streams import Stream, set_stream

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats", "set_device_idx",
    "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


class AcceleratorError(RuntimeError):
    """An error of a GPU's runtime. Errors of the server's GPUs come as gradwire's own classes."""

    __module__ = "torch"


def is_available() -> bool:
    """Whether the server has a GPU. Opens the session if none is open."""
    return gpu_count() > 0


def device_count() -> int:
    """How many GPUs the server has."""
    return gpu_count()


def current_accelerator(check_available: bool = False) -> size.device | None:
    """``device("cuda")`` where the server has a GPU, else None."""
    return size.device("cuda") if gpu_count() else None


def current_device_index() -> int:
    """The number of the GPU that ``cuda`` means.

    Raises:
        DeviceError: when the server has none.
    """
    return gpu_index()


def set_device_index(device: Device) -> None:
    """Let ``cuda`` mean another GPU in this thread, from here on."""
    PLACES.cuda = gpu_index(device)


def current_stream(device: Device = None) -> Stream:
    """The one stream of a GPU."""
    return Stream(device)


class device_index(OnDevice):
    """``with torch.accelerator.device_index(1):`` makes GPU 1 the current one inside."""


current_device_idx = current_device_index
set_device_idx = set_device_index


def get_device_module(device: Device = None) -> ModuleType:
    """``torch.cuda`` or ``torch.cpu``, by the kind of a device."""
    kind = get_default_device().type if device is None else size.device(device).type
    return cuda if kind == "cuda" else cpu
