"""The devices of the server, for ``torch.cuda`` and ``torch.accelerator``.

How many there are is known since the connection was opened. What they are called and how full they are is asked
with a REST request each time.
"""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import DeviceError

from ..context.default_device import PLACES
from ..context.size import device as Device
from ..session.current_session import current_session


def gpu_count() -> int:
    """How many GPUs the server has. Opens the session if none is open."""
    return sum(name.startswith("cuda") for name in current_session().link.devices)


def gpu_index(device: Any = None) -> int:
    """The number of a GPU given as a device, a string, a number, or None for the current one.

    Raises:
        DeviceError: when the server has no such GPU, or what is given is no GPU.
    """
    if device is None:
        index = PLACES.cuda
    elif isinstance(device, int) and not isinstance(device, bool):
        index = PLACES.cuda if device < 0 else device
    else:
        given = device if isinstance(device, Device) else Device(device)
        if given.type != "cuda":
            raise DeviceError(f"a GPU is expected, not the device {given}")
        index = PLACES.cuda if given.index is None else given.index
    count = gpu_count()
    if index >= count:
        has = "no GPU" if count == 0 else f"{count} GPU{'s' * (count > 1)}"
        raise DeviceError(f"there is no GPU {index}: the server has {has}", devices=current_session().link.devices)
    return index


def facts(device: Device | str | int | None = None) -> dict[str, Any]:
    """What the server tells of a GPU: model, memory, capability, multiprocessors.

    Raises:
        DeviceError: when the server has no such GPU.
    """
    name = f"cuda:{gpu_index(device)}"
    rows: list[dict[str, Any]] = current_session().rest.get("/v1/devices")["devices"]
    return next(row for row in rows if row["name"] == name)


def held() -> dict[str, int]:
    """What the session holds, in bytes, by name; zeros where the server has no GPU. One round trip."""
    if gpu_count() == 0:
        return dict.fromkeys(("live_bytes", "peak_bytes", "pooled_bytes", "limit_bytes"), 0)
    return current_session().memory()


def synchronize(device: Device | str | int | None = None) -> None:
    """Wait until everything recorded so far is done, on every device. One round trip.

    Raises:
        DeviceError: when the server has no such GPU.
    """
    gpu_index(device)
    current_session().synchronize()


class OnDevice:
    """Another current GPU for the extent of a ``with``; none given, or a negative number, leaves the current one."""

    def __init__(self, device: Device | str | int | None) -> None:
        self.idx: int = -1 if device is None else gpu_index(device)
        self.prev_idx: int = -1

    def __enter__(self) -> None:
        self.prev_idx = PLACES.cuda
        if self.idx >= 0:
            PLACES.cuda = self.idx

    def __exit__(self, *_: object) -> None:
        PLACES.cuda = self.prev_idx
