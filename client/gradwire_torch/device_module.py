"""``torch.gradwire``: the server's devices, memory and random numbers."""

from __future__ import annotations

from typing import Any

import torch

import gradwire as gw


def is_available() -> bool:
    """Whether there is a server, or one can be started."""
    return True


def is_initialized() -> bool:
    """Whether the device can be used: always."""
    return True


def device_count() -> int:
    """How many devices the server has."""
    return 1


def current_device() -> int:
    """The device that ``"gradwire"`` without a number means."""
    return 0


def set_device(device: Any) -> None:
    """Choose the device that ``"gradwire"`` without a number means."""


def synchronize(device: Any = None) -> None:
    """Wait until everything recorded is computed."""
    gw.synchronize()


def manual_seed(seed: int) -> None:
    """Start the random numbers of the device."""
    gw.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all devices."""
    gw.manual_seed(seed)


def _is_in_bad_fork() -> bool:
    return False


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes of autocast."""
    return [torch.float16, torch.bfloat16]


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of the random numbers."""
    return torch.from_numpy(gw.get_rng_state().numpy())


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Restore the state of the random numbers."""
    gw.set_rng_state(gw.from_numpy(new_state.numpy()))
