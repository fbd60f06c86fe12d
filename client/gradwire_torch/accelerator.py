"""``torch.accelerator`` for the device, where PyTorch asks what only a device in C++ can answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import torch

from . import device_module, devices

_ANSWERS: Final[dict[str, Callable[..., Any]]] = {
    "device_count": device_module.device_count,
    "current_device_index": device_module.current_device,
    "current_device_idx": device_module.current_device,
    "set_device_index": device_module.set_device,
    "set_device_idx": device_module.set_device,
    "synchronize": device_module.synchronize,
    "empty_cache": device_module.empty_cache,
    "memory_allocated": device_module.memory_allocated,
    "max_memory_allocated": device_module.max_memory_allocated,
    "memory_reserved": device_module.memory_reserved,
    "max_memory_reserved": device_module.max_memory_reserved,
    "memory_stats": device_module.memory_stats,
    "reset_peak_memory_stats": device_module.reset_peak_memory_stats,
    "get_memory_info": device_module.mem_get_info,
}


def install() -> None:
    """Let the functions of ``torch.accelerator`` answer for the device."""
    for name, answer in _ANSWERS.items():
        plain = getattr(torch.accelerator, name, None)
        if plain is not None:
            setattr(torch.accelerator, name, _answering(plain, answer))


def _answering(plain: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        current = torch.accelerator.current_accelerator()
        return (answer if current is not None and current.type == devices.NAME else plain)(*args, **kwargs)

    return call
