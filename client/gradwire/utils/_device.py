"""``torch.utils._device``: the default device of new tensors, as a context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.context.size import device as _device
from ._contextlib import context_decorator


def device_decorator(device: Any, func: Callable[..., Any]) -> Any:
    """A function in which new tensors are on a device."""
    return context_decorator(lambda: _device(device), func)


def set_device(device: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that puts new tensors of a function on a device."""
    return lambda func: device_decorator(device, func)


def DeviceContext(device: Any) -> Any:
    """The context in which new tensors are on a device: the device itself."""
    return _device(device)
