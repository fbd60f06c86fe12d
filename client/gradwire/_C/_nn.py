"""``torch._C._nn``: functions of layers below ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._core.context.layouts import memory_format
from .._core.context.size import device as Device
from .._core.surface.to_arguments import to_arguments
from .._core.tensor.tensor import Tensor


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Device | None, Any, bool, memory_format | None]:
    """What the arguments of ``to`` mean: device, dtype, ``non_blocking``, memory format."""
    target, dtype, _ = to_arguments("to", args, kwargs)
    flags = [value for value in args if isinstance(value, bool)]
    waiting = bool(kwargs.get("non_blocking", flags[0] if flags else False))
    found = target if target is None or isinstance(target, Device) else Device(target)
    return found, dtype, waiting, kwargs.get("memory_format")


def flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of several tensors, one after the other, in one dimension."""
    from .. import cat

    found = [tensor.contiguous().view(-1) for tensor in tensors]
    return cat(found) if len(found) != 1 else found[0]


def unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of ``flat`` with the shapes of several tensors, one after the other."""
    views, at = [], 0
    for tensor in tensors:
        count = tensor.numel()
        views.append(flat.narrow(0, at, count).view(tensor.shape) if count else flat.new_empty(tensor.shape))
        at += count
    return tuple(views)


def __getattr__(name: str) -> Any:
    from ..nn import functional

    if not name.startswith("_") and callable(found := vars(functional).get(name)):
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
