"""Maximum pools, whose result in PyTorch depends on ``return_indices``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dispatch import call
from ...tensor import Tensor

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


def _max_pool(count: int) -> Callable[..., Any]:
    name = f"max_pool{count}d"

    def function(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        chosen = name + "_with_indices" if return_indices else name
        # An empty stride is the kernel size, as None is.
        return call(chosen, input, kernel_size, None if stride in ((), []) else stride, padding, dilation, ceil_mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The maximum of every window over the last {count} dimensions; with ``return_indices`` also where each was."
    )
    return function


def _adaptive_max_pool(count: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{count}d"

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        values, indices = call(name, input, output_size)
        return (values, indices) if return_indices else values

    function.__name__ = function.__qualname__ = name

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return tuple(call(name, input, output_size))

    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f":func:`{name}` and where each maximum was."
    function.with_indices = with_indices  # type: ignore[attr-defined]
    function.__doc__ = (
        f"Maxima over windows that divide the last {count} dimensions into ``output_size``; with ``return_indices`` "
        "also where each was."
    )
    return function


max_pool1d, max_pool2d, max_pool3d = (_max_pool(count) for count in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max_pool(count) for count in (1, 2, 3))
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = (
    pool.with_indices  # type: ignore[attr-defined]
    for pool in (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)
