"""``torch.cuda``: the GPUs of the server. ``torch.device("cuda")`` works from a laptop that has none.

Where the server has no GPU, questions are answered (``is_available()`` is False) and everything that needs one raises
``DeviceError``, a ``RuntimeError``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from gradwire_protocol.errors import OutOfMemory as OutOfMemoryError

from .._core.context.argument_types import Device
from .._core.context.default_device import PLACES
from .._core.surface.generator import default_generator
from .._core.surface.server_devices import OnDevice, facts, gpu_count, gpu_index, synchronize
from .._core.tensor.tensor import Tensor
from .graphs import is_current_stream_capturing, make_graphed_callables
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream

if TYPE_CHECKING:
    from . import amp as amp

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "StreamContext", "can_device_access_peer", "current_device",
    "current_stream", "default_stream", "device", "device_count", "device_of", "empty_cache", "get_arch_list",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "init",
    "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "is_initialized", "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_max_memory_allocated", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip


class DeviceProperties(NamedTuple):
    """Properties of a GPU of the server."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


class device(OnDevice):
    """``with torch.cuda.device(1):`` makes GPU 1 the one that ``cuda`` means inside."""


class device_of(OnDevice):
    """``with torch.cuda.device_of(x):`` makes the GPU of a tensor the current one; a tensor on the CPU changes
    nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


def is_available() -> bool:
    """Whether the server has a GPU. Opens the session if none is open."""
    return gpu_count() > 0


def device_count() -> int:
    """The number of the server's GPUs."""
    return gpu_count()


def is_initialized() -> bool:
    """Whether the GPU can be used: always, if the server has one."""
    return is_available()


def init() -> None:
    """Without effect: the first operation on a GPU opens it."""


def current_device() -> int:
    """The number of the GPU that ``cuda`` means.

    Raises:
        DeviceError: when the server has none.
    """
    return gpu_index()


def set_device(device: Device) -> None:
    """Let ``cuda`` mean another GPU in this thread, from here on.

    Raises:
        DeviceError: when the server has no such GPU.
    """
    PLACES.cuda = gpu_index(device)


def get_device_name(device: Device = None) -> str:
    """The vendor's name of a GPU."""
    return str(facts(device)["model"])


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """The compute capability of a GPU, (major, minor)."""
    major, minor = facts(device)["capability"]
    return int(major), int(minor)


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, compute capability, memory and multiprocessors of a GPU."""
    found = facts(device)
    major, minor = found["capability"]
    return DeviceProperties(found["model"], major, minor, found["total_bytes"], found["multiprocessors"])


def get_arch_list() -> list[str]:
    """The architectures that code was compiled for: none, since the server compiles for the GPU it has."""
    return []


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether two GPUs share memory: tensors go from one to another through the host, so no."""
    gpu_index(device)
    gpu_index(peer_device)
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with: on every GPU, in float32 and rounded once."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def ipc_collect() -> None:
    """Without effect: processes share no memory of the server."""


# Random numbers: all devices draw from the session's generator


def manual_seed(seed: int) -> None:
    """Restart the session's random numbers, which all its devices draw from. Nothing where there is no GPU."""
    if is_available():
        default_generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """:func:`manual_seed`: there is one generator for all GPUs."""
    manual_seed(seed)


def seed() -> None:
    """Restart the session's random numbers at a seed that the operating system draws."""
    if is_available():
        default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    """The seed that the session's random numbers were started with last."""
    gpu_index()
    return default_generator.initial_seed()


def get_rng_state(device: Device = "cuda") -> Tensor:
    """The state of the session's random numbers."""
    gpu_index(device)
    return default_generator.get_state()


def get_rng_state_all() -> list[Any]:
    """The state for each GPU: the same one, since they share it."""
    return [default_generator.get_state() for _ in range(gpu_count())]


def set_rng_state(new_state: Tensor, device: Device = "cuda") -> None:
    """Go on from a state that :func:`get_rng_state` gave."""
    gpu_index(device)
    default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Go on from the states that :func:`get_rng_state_all` gave."""
    for state in new_states:
        set_rng_state(state)


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module("gradwire.cuda.amp")
    if name in ("nvtx", "profiler"):
        from importlib import import_module

        return import_module(f"gradwire.cuda.{name}")
    if name in ("CUDAGraph", "graph", "graph_pool_handle"):
        from . import graphs

        return getattr(graphs, name)
    if name.endswith("Tensor"):
        from .._core.surface.tensor_types import CUDA_TYPES

        if name in CUDA_TYPES:
            return CUDA_TYPES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
