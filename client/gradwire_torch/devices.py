"""The devices by their numbers: the server's GPUs, or its CPU where it has none."""

from __future__ import annotations

import threading
from typing import Any, Final

import torch

import gradwire as gw

from .device_type import NAME

_known: tuple[list[str], list[str]] = [], ["cpu"]
"""What the server has, as the session tells it, and those of it that are numbered here."""


def names() -> list[str]:
    """gradwire's names of the devices, in the order of their numbers."""
    global _known
    known, there = _known, gw.current_session().link.devices
    if known[0] is not there:
        known = _known = there, [name for name in there if name.startswith("cuda")] or ["cpu"]
    return known[1]


class _Current(threading.local):
    """The device that a thread means without a number."""

    index = 0


current: Final = _Current()


def index_of(device: Any) -> int:
    """The number of a device.

    Args:
        device: a number, a ``torch.device`` or its name; None is the current one.

    Raises:
        RuntimeError: if the server has no such device.
        ValueError: if it is a device of another type.
    """
    if device is None:
        return current.index
    if not isinstance(device, int):
        wanted = torch.device(device)
        if wanted.type != NAME:
            raise ValueError(f"{wanted} is not a device of gradwire")
        device = current.index if wanted.index is None else wanted.index
    if not 0 <= device < len(names()):
        raise RuntimeError(f"there is no device {NAME}:{device}: the server has {len(names())}")
    return int(device)


def name_of(device: Any) -> str:
    """gradwire's name of a device that is given as :func:`index_of` takes it."""
    return names()[index_of(device)]


def place(device: torch.device | None) -> str:
    """gradwire's name of the device that PyTorch makes a tensor on; it takes None for the current one."""
    index = None if device is None else device.index
    known = names()
    if index is None:
        index = current.index
    return known[index] if index < len(known) else name_of(index)
