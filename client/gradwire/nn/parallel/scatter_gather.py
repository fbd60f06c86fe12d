"""``torch.nn.parallel.scatter_gather``: tensors cut into parts for several devices, and put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor.tensor import Tensor
from . import comm

__all__ = ["gather", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


_is_namedtuple = is_namedtuple


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """One value for each device: tensors in containers are cut along ``dim``, other values are the same for all."""
    if isinstance(inputs, Tensor):
        return comm.scatter(inputs, target_gpus, dim=dim)
    if is_namedtuple(inputs):
        return [type(inputs)(*parts) for parts in zip(*[scatter(x, target_gpus, dim) for x in inputs], strict=False)]
    if isinstance(inputs, tuple) and inputs:
        return list(zip(*[scatter(x, target_gpus, dim) for x in inputs], strict=False))
    if isinstance(inputs, list) and inputs:
        return [list(parts) for parts in zip(*[scatter(x, target_gpus, dim) for x in inputs], strict=False)]
    if isinstance(inputs, dict) and inputs:
        rows = zip(*[scatter(item, target_gpus, dim) for item in inputs.items()], strict=False)
        return [type(inputs)(row) for row in rows]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """:func:`scatter` of the arguments of a call, as many of both kinds."""
    placed = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(placed), len(named))
    placed += [()] * (count - len(placed))
    named += [{} for _ in range(count - len(named))]
    return tuple(placed), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The reverse of :func:`scatter`: tensors of several devices joined on one.

    Raises:
        ValueError: for dictionaries of different lengths.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        return comm.gather(outputs, dim, target_device)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in outputs):
            raise ValueError(f"the dictionaries have different lengths: {[len(each) for each in outputs]}")
        return type(first)((key, gather([each[key] for each in outputs], target_device, dim)) for key in first)
    parts = [gather(column, target_device, dim) for column in zip(*outputs, strict=True)]
    return type(first)._make(parts) if is_namedtuple(first) else type(first)(parts)
