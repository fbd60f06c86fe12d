"""Parameters stay the same objects when a module is moved to the device or from it.

Modules move a parameter by its ``data``, so that optimizers and shared weights keep it. PyTorch does that for the
devices that it knows, and would replace the parameters here.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from .device_type import NAME

_plain: Final[Any] = torch.Tensor.data
_compatible: Final[Any] = torch._has_compatible_shallow_copy_type


def _between(one: Any, other: Any) -> bool:
    """Whether one of two tensors is on the device, and the other is not."""
    return (one.device.type == NAME) != (other.device.type == NAME)


def _set_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Let a tensor stand for the values of another, which may be on another device.

    Raises:
        RuntimeError: for a result of the tape's on another device.
    """
    if not (isinstance(value, torch.Tensor) and _between(tensor, value)) or not tensor.is_leaf:
        _plain.__set__(tensor, value)
        return
    grad = tensor.grad
    moved = value.detach().requires_grad_(tensor.requires_grad)
    tensor.grad = None
    torch._C._swap_tensor_impl(tensor, moved)
    if grad is not None:
        tensor.grad = grad.to(tensor.device, tensor.dtype)


def _can_be_set(input: torch.Tensor, from_: torch.Tensor) -> bool:
    """Whether a tensor's ``data`` can be that of another. PyTorch's compiler looks at the names of the arguments."""
    on_meta = "meta" in (input.device.type, from_.device.type)
    return bool(_compatible(input, from_)) or (_between(input, from_) and not on_meta)


def install() -> None:
    """Let modules set the data of their parameters when they move."""
    torch.Tensor.data = property(_plain.__get__, _set_data)  # type: ignore[assignment]
    torch._has_compatible_shallow_copy_type = _can_be_set
