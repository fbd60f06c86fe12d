"""Pools and their inverses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..._core.context.argument_types import Extents
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import rand
from ..._core.tensor.tensor import Tensor

__all__ = [
    "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def _max_pool(count: int) -> Callable[..., Any]:
    name = f"max_pool{count}d"

    def function(
        input: Tensor, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0, dilation: Extents = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
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

    def function(
        input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        values, indices = call(name, input, output_size)
        return (values, indices) if return_indices else values

    function.__name__ = function.__qualname__ = name

    def with_indices(
        input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> tuple[Tensor, Tensor]:
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


def _each(name: str, what: str, value: Any, count: int, refused: type[Exception] = ArgumentError) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        return (value,) * count
    if len(value) != count:
        raise refused(f"{name}: {what} takes one number or {count}, got {list(value)}")
    return tuple(value)


def _unpooled(
    name: str, input: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    output_size: Any,
) -> tuple[int, ...]:  # fmt: skip
    """The extents that a pool with this geometry was applied to; several are possible, ``output_size`` picks one."""
    count = len(kernel)
    usual = tuple(
        (n - 1) * s + k - 2 * p for n, s, k, p in zip(input.shape[-count:], stride, kernel, padding, strict=True)
    )
    if output_size is None:
        return usual
    wanted = tuple(output_size)
    wanted = wanted[2:] if len(wanted) == count + 2 else wanted
    if len(wanted) != count:
        raise ArgumentValueError(f"{name}: output_size has {count} or {count + 2} extents, got {list(output_size)}")
    for n, s, given in zip(usual, stride, wanted, strict=True):
        if not n - s < given < n + s:
            raise ArgumentValueError(
                f"{name}: output_size {list(wanted)} is too far from {list(usual)}: less than a stride, {list(stride)}"
            )
    return wanted


def _max_unpool(count: int) -> Callable[..., Any]:
    name = f"max_unpool{count}d"

    def function(
        input: Tensor,
        indices: Tensor,
        kernel_size: Extents,
        stride: Extents | None = None,
        padding: Extents = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        kernel = _each(name, "kernel_size", kernel_size, count)
        steps = kernel if stride is None or stride == () or stride == [] else _each(name, "stride", stride, count)
        size = _unpooled(name, input, kernel, steps, _each(name, "padding", padding, count), output_size)
        if count > 1:
            return call("max_unpool", input, indices, size)
        laid = call("max_unpool", call("unsqueeze", input, -1), call("unsqueeze", indices, -1), (*size, 1))
        return call("squeeze", laid, -1)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Lay the maxima of a pool over the last {count} dimensions back to their ``indices``, with zeros elsewhere. "
        "``output_size`` picks one of the sizes that a stride leaves open."
    )
    return function


def _fractional_max_pool(count: int) -> Callable[..., Any]:
    name = f"fractional_max_pool{count}d"

    def with_indices(
        input: Tensor, kernel_size: Extents, output_size: Extents | None = None,
        output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        if output_size is None:
            if output_ratio is None:
                raise ArgumentValueError(f"{name} takes output_size or output_ratio, got neither")
            ratio = _each(name, "output_ratio", output_ratio, count, ArgumentValueError)
            output_size = tuple(int(n * r) for n, r in zip(input.shape[-count:], ratio, strict=True))
        if _random_samples is None:
            batch = 1 if input.ndim == count + 1 else input.shape[0]
            shape = (batch, input.shape[-count - 1], count)
            _random_samples = rand(*shape, dtype=input.dtype, device=input.device)
        kernel, size = _each(name, "kernel_size", kernel_size, count), _each(name, "output_size", output_size, count)
        return call("fractional_max_pool", input, _random_samples, kernel, size)

    def function(
        input: Tensor, kernel_size: Extents, output_size: Extents | None = None,
        output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        values, indices = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return (values, indices) if return_indices else values

    function.__name__ = function.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    function.__doc__ = (
        f"Maxima over windows at random places of the last {count} dimensions, which become ``output_size``, or "
        "``output_ratio`` of what they were; with ``return_indices`` also where each maximum was."
    )
    with_indices.__doc__ = f":func:`{name}` and where each maximum was."
    function.with_indices = with_indices  # type: ignore[attr-defined]
    return function


max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(count) for count in (1, 2, 3))
fractional_max_pool2d, fractional_max_pool3d = (_fractional_max_pool(count) for count in (2, 3))
fractional_max_pool2d_with_indices = fractional_max_pool2d.with_indices  # type: ignore[attr-defined]
fractional_max_pool3d_with_indices = fractional_max_pool3d.with_indices  # type: ignore[attr-defined]


# Power averages


def _lp_pool(count: int) -> Callable[..., Any]:
    name = f"lp_pool{count}d"

    def function(
        input: Tensor, norm_type: float, kernel_size: Extents, stride: Extents | None = None, ceil_mode: bool = False
    ) -> Tensor:
        kernel = _each(name, "kernel_size", kernel_size, count, ArgumentValueError)
        powers = call("pow", input, norm_type)
        means = call(f"avg_pool{count}d", powers, kernel, None if stride in ((), []) else stride, 0, ceil_mode)
        sums = call("mul", call("mul", call("sign", means), call("relu", call("abs", means))), prod(kernel))
        return call("pow", sums, 1.0 / norm_type)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The root of order ``norm_type`` of the sum of powers of every window over the last {count} dimensions."
    )
    return function


lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(count) for count in (1, 2, 3))
