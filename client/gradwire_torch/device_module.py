"""``torch.gradwire``: the server's devices, its memory and its random numbers."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final

import torch

import gradwire as gw

from . import devices
from .device_type import NAME
from .memory import theirs
from .progress import upload_progress as upload_progress
from .registration import forked

Device = torch.device | str | int | None

_initialized: Final = True
"""PyTorch asks so whether there is a state of random numbers to keep while it computes a part again."""


def is_available() -> bool:
    """Whether there is a server: the one of ``GRADWIRE_URL``, or one that this program starts."""
    return True


def is_initialized() -> bool:
    """Whether the device can be used: always, since the first operation connects."""
    return True


def init() -> None:
    """Connect now, and not at the first operation."""
    gw.current_session()


def device_count() -> int:
    """How many devices the server has."""
    return len(devices.names())


def current_device() -> int:
    """The number of the device that ``"gradwire"`` means in this thread."""
    return devices.current.index


def set_device(device: Device) -> None:
    """Choose the device that ``"gradwire"`` means in this thread.

    Raises:
        RuntimeError: if the server has no such device.
    """
    devices.current.index = devices.index_of(device)


class device:
    """A context manager that chooses the device that ``"gradwire"`` means."""

    def __init__(self, device: Device) -> None:
        self.idx = devices.index_of(device)
        self._before = self.idx

    def __enter__(self) -> None:
        self._before, devices.current.index = devices.current.index, self.idx

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        devices.current.index = self._before


def get_device_name(device: Device = None) -> str:
    """The server's name of a device."""
    return devices.name_of(device)


def synchronize(device: Device = None) -> None:
    """Wait until everything recorded is computed. One round trip."""
    gw.current_session().synchronize()


# Memory


def _held() -> dict[str, int]:
    """What the session holds, in bytes, by name. One round trip."""
    return gw.current_session().memory()


def memory_allocated(device: Device = None) -> int:
    """Bytes that the session's tensors hold."""
    return _held()["live_bytes"]


def max_memory_allocated(device: Device = None) -> int:
    """The most that :func:`memory_allocated` told since the session began, or since the last reset."""
    return _held()["peak_bytes"]


def memory_reserved(device: Device = None) -> int:
    """Bytes that the session's tensors hold, and those that the server keeps for tensors to come."""
    found = _held()
    return found["live_bytes"] + found["pooled_bytes"]


def max_memory_reserved(device: Device = None) -> int:
    """The most that :func:`memory_reserved` told since the session began."""
    found = _held()
    return max(found["peak_bytes"], found["live_bytes"] + found["pooled_bytes"])


def memory_stats(device: Device = None) -> dict[str, int]:
    """The figures that gradwire has, under the names of ``torch.cuda``."""
    return gw.cuda.memory_stats()


def reset_peak_memory_stats(device: Device = None) -> None:
    """Let the peaks begin anew."""
    gw.current_session().reset_peak_memory()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free bytes and all bytes of a GPU, whoever uses them.

    Raises:
        DeviceError: when the server has no GPU.
    """
    return gw.cuda.mem_get_info(devices.index_of(device))


def empty_cache() -> None:
    """Give back what the server keeps for tensors to come."""
    gw.cuda.empty_cache()


# Random numbers


def manual_seed(seed: int) -> None:
    """Start the device's random numbers. They are gradwire's, not those of PyTorch's CPU."""
    gw.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all devices."""
    gw.manual_seed(seed)


def seed() -> None:
    """Start the device's random numbers anywhere."""
    gw.seed()


def initial_seed() -> int:
    """What the random numbers were started with."""
    return gw.initial_seed()


def get_rng_state(device: Device = None) -> torch.Tensor:
    """The state of the random numbers, on the CPU. One round trip."""
    return torch.from_numpy(gw.get_rng_state().numpy())


def set_rng_state(new_state: torch.Tensor, device: Device = None) -> None:
    """Restore the state of the random numbers."""
    gw.set_rng_state(gw.from_numpy(new_state.numpy()))


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices: they have one."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Restore what :func:`get_rng_state_all` returned."""
    for state in new_states:
        set_rng_state(state)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that autocast computes in."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported() -> bool:
    """Whether there is bfloat16: yes, computed in float32 and rounded."""
    return True


def _is_in_bad_fork() -> bool:
    return forked()


# Streams: there is one, and it is in order


class Stream:
    """The only stream: work is done in the order in which it was recorded."""

    def __init__(self, device: Device = None, priority: int = 0, **_: Any) -> None:
        self.device = torch.device(NAME, devices.index_of(device))
        self.priority = priority

    def synchronize(self) -> None:
        """Wait until everything recorded is computed."""
        synchronize()

    def query(self) -> bool:
        """Wait for all work and return True."""
        synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Without effect: work is in order."""

    def wait_event(self, event: Any) -> None:
        """Without effect: work is in order."""

    def record_event(self, event: Any = None) -> Any:
        """An event that what was recorded so far comes before."""
        found = Event() if event is None else event
        found.record()
        return found

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


Event: Final = gw.cuda.Event
"""A place in the order of work; with ``enable_timing=True`` it takes the time."""


def current_stream(device: Device = None) -> Stream:
    """The only stream."""
    return Stream(device)


default_stream: Final = current_stream


def stream(stream: Stream | None) -> Stream:
    """A context manager without effect: there is one stream."""
    return stream or Stream()


def set_stream(stream: Stream) -> None:
    """Without effect: there is one stream."""


def as_tensor(tensor: gw.Tensor) -> torch.Tensor:
    """A tensor of gradwire's own client as one of PyTorch's on this device: a copy, without history."""
    return theirs(tensor.detach().clone())
