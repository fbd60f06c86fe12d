"""Tensors joined, stacked and combined with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def tensors_of(given: Sequence[Any]) -> list[Tensor]:
    return list(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else list(given)


def _at_least(x: Tensor, ndim: int) -> Tensor:
    """With enough dimensions, added where NumPy adds them."""
    if x.ndim == 0:
        x = call("reshape", x, (1,))
    if ndim >= 2 and x.ndim == 1:
        x = call("unsqueeze", x, 0)
    if ndim == 3 and x.ndim == 2:
        x = call("unsqueeze", x, 2)
    return x


def _atleast(name: str, ndim: int) -> None:
    def function(*tensors: Any) -> Any:
        found = [_at_least(x, ndim) for x in tensors_of(tensors)]
        return found[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else tuple(found)

    function.__name__, function.__doc__ = name, f"Viewed with at least {ndim} dimensions."
    offer(function, method=False)


for _ndim in (1, 2, 3):
    _atleast(f"atleast_{_ndim}d", _ndim)


def hstack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the second dimension, along the first for 1-D tensors."""
    parts = [_at_least(x, 1) for x in tensors]
    return call("cat", parts, 0 if parts and parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the first dimension; 1-D tensors count as rows."""
    return call("cat", [_at_least(x, 2) for x in tensors], 0)


def dstack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the third dimension."""
    return call("cat", [_at_least(x, 3) for x in tensors], 2)


def column_stack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the second dimension; tensors of fewer than two dimensions count as columns."""
    columns = [call("reshape", x, (x.numel(), 1)) if x.ndim < 2 else x for x in tensors]
    return call("cat", columns, 1)


for _plain in (
    hstack,
    vstack,
    dstack,
    column_stack,
):
    offer(_plain, method=False)
