"""``torch.accelerator`` for the device, where PyTorch asks what only a device in C++ can answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import torch

from .device_type import NAME

_ANSWERS: Final[dict[str, str]] = {
    "current_device_index": "current_device",
    "current_device_idx": "current_device",
    "set_device_index": "set_device",
    "set_device_idx": "set_device",
    "get_memory_info": "mem_get_info",
    **{
        name: name
        for name in (
            "device_count", "synchronize", "empty_cache", "memory_allocated", "max_memory_allocated",
            "memory_reserved", "max_memory_reserved", "memory_stats", "reset_peak_memory_stats",
        )
    },
}  # fmt: skip
"""By the function of ``torch.accelerator``: that of ``torch.gradwire``."""


def install() -> None:
    """Let the functions of ``torch.accelerator`` answer for the device."""
    for name, answer in _ANSWERS.items():
        plain = getattr(torch.accelerator, name, None)
        if plain is not None:
            setattr(torch.accelerator, name, _answering(plain, answer))
    tensor: Any = torch.Tensor
    tensor.pin_memory, tensor.is_pinned = _pinned(tensor.pin_memory, None), _pinned(tensor.is_pinned, False)


def _pinned(plain: Callable[..., Any], answer: bool | None) -> Callable[..., Any]:
    """A method of tensors that asks for the accelerator's pinned memory: a tensor is its own copy there, since what is
    sent to the server is copied at once."""

    @wraps(plain)
    def call(self: torch.Tensor, device: Any = None) -> Any:
        wanted = torch.accelerator.current_accelerator() if device is None else torch.device(device)
        if wanted is None or wanted.type != NAME or torch.overrides.has_torch_function((self,)):
            return plain(self) if device is None else plain(self, device)
        return self if answer is None else answer

    return call


def _answering(plain: Callable[..., Any], answer: str) -> Callable[..., Any]:
    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        current = torch.accelerator.current_accelerator()
        here = current is not None and current.type == NAME
        return (getattr(torch.gradwire, answer) if here else plain)(*args, **kwargs)  # type: ignore[attr-defined]

    return call
