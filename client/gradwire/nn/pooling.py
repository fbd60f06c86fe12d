"""Pools and their inverses: the largest element, the mean or a norm of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError

from .._core.context.argument_types import Extents
from .._core.modules.module import Module
from .._core.tensor.tensor import Tensor
from . import functional as F
from .sizes import per_dimension
from .variants import Variant


class _MaxPoolNd(Variant):
    dimensions: ClassVar[int]

    def __init__(
        self, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0, dilation: Extents = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size: Extents = kernel_size
        self.stride: int | Sequence[int] = kernel_size if stride is None else stride
        self.padding: Extents = padding
        self.dilation: Extents = dilation
        self.return_indices: bool = return_indices
        self.ceil_mode: bool = ceil_mode

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The largest element of each window; with ``return_indices`` also where it was."""
        function = getattr(F, f"max_pool{self.dimensions}d")
        return function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd, dimensions=1):
    """The largest of each window along the last dimension: ``(N, C, L)`` gives ``(N, C, L')``."""


class MaxPool2d(_MaxPoolNd, dimensions=2):
    """The largest of each window of an image: ``(N, C, H, W)`` gives ``(N, C, H', W')``."""


class MaxPool3d(_MaxPoolNd, dimensions=3):
    """The largest of each window of a volume: ``(N, C, D, H, W)`` gives ``(N, C, D', H', W')``."""


class AvgPool1d(Module):
    """The mean of each window along the last dimension: ``(N, C, L)`` gives ``(N, C, L')``."""

    def __init__(
        self, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size: tuple[int, ...] = per_dimension(kernel_size, 1)
        self.stride: tuple[int, ...] = self.kernel_size if stride is None else per_dimension(stride, 1)
        self.padding: tuple[int, ...] = per_dimension(padding, 1)
        self.ceil_mode: bool = ceil_mode
        self.count_include_pad: bool = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The mean of each window."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Variant):
    dimensions: ClassVar[int]

    def __init__(
        self, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size: Extents = kernel_size
        self.stride: int | Sequence[int] = kernel_size if stride is None else stride
        self.padding: Extents = padding
        self.ceil_mode: bool = ceil_mode
        self.count_include_pad: bool = count_include_pad
        self.divisor_override: int | None = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The mean of each window."""
        function = getattr(F, f"avg_pool{self.dimensions}d")
        return function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool, dimensions=2):
    """The mean of each window of an image: ``(N, C, H, W)`` gives ``(N, C, H', W')``."""


class AvgPool3d(_AvgPool, dimensions=3):
    """The mean of each window of a volume: ``(N, C, D, H, W)`` gives ``(N, C, D', H', W')``."""


class _AdaptivePool(Variant):
    function: ClassVar[str]

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        super().__init__()
        self.output_size: int | Sequence[int | None] = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Pool with windows that give ``output_size``."""
        return getattr(F, self.function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool, function="adaptive_avg_pool1d"):
    """Means over windows chosen so that ``output_size`` of them cover the last dimension."""


class AdaptiveAvgPool2d(_AdaptivePool, function="adaptive_avg_pool2d"):
    """Means over windows chosen so that the image becomes ``output_size``; None keeps an extent."""


class AdaptiveAvgPool3d(_AdaptivePool, function="adaptive_avg_pool3d"):
    """Means over windows chosen so that the volume becomes ``output_size``; None keeps an extent."""


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: int | Sequence[int | None], return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices: bool = return_indices

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # type: ignore[override]
        """Pool with windows that give ``output_size``; with ``return_indices`` also where each maximum was."""
        return getattr(F, self.function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool, function="adaptive_max_pool1d"):
    """Maxima over windows chosen so that ``output_size`` of them cover the last dimension."""


class AdaptiveMaxPool2d(_AdaptiveMaxPool, function="adaptive_max_pool2d"):
    """Maxima over windows chosen so that the image becomes ``output_size``; None keeps an extent."""


class AdaptiveMaxPool3d(_AdaptiveMaxPool, function="adaptive_max_pool3d"):
    """Maxima over windows chosen so that the volume becomes ``output_size``; None keeps an extent."""


def _each(value: Any, count: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _FractionalMaxPool(Variant):
    dimensions: ClassVar[int]

    def __init__(
        self, kernel_size: Extents, output_size: Extents | None = None,
        output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        count, name = self.dimensions, type(self).__name__
        self.kernel_size: tuple[int, ...] = per_dimension(kernel_size, count)
        self.return_indices: bool = return_indices
        self.register_buffer("_random_samples", _random_samples)
        # How many there are is for forward to check, as in PyTorch.
        self.output_size: tuple[Any, ...] | None = None if output_size is None else _each(output_size, count)
        self.output_ratio: tuple[Any, ...] | None = None if output_ratio is None else _each(output_ratio, count)
        if (self.output_size is None) == (self.output_ratio is None):
            raise ArgumentValueError(f"{name} takes output_size or output_ratio, and not both")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ArgumentValueError(f"{name}: output_ratio is between 0 and 1, not {output_ratio}")

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The largest element of each window; with ``return_indices`` also where it was."""
        function = getattr(F, f"fractional_max_pool{self.dimensions}d")
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool, dimensions=2):
    """The largest elements of windows at random places of images, which become ``output_size`` or ``output_ratio`` of
    what they were."""


class FractionalMaxPool3d(_FractionalMaxPool, dimensions=3):
    """The largest elements of windows at random places of volumes, which become ``output_size`` or ``output_ratio`` of
    what they were."""


class _LPPool(Variant):
    dimensions: ClassVar[int]

    def __init__(
        self, norm_type: float, kernel_size: Extents, stride: Extents | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type: float = norm_type
        self.kernel_size: Extents = kernel_size
        self.stride: Extents | None = stride
        self.ceil_mode: bool = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """The root of the sum of powers of each window."""
        function = getattr(F, f"lp_pool{self.dimensions}d")
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool, dimensions=1):
    """The norm of order ``norm_type`` of each window along the last dimension: ``(N, C, L)`` gives ``(N, C, L')``."""


class LPPool2d(_LPPool, dimensions=2):
    """The norm of order ``norm_type`` of each window of an image: ``(N, C, H, W)`` gives ``(N, C, H', W')``."""


class LPPool3d(_LPPool, dimensions=3):
    """The norm of order ``norm_type`` of each window of a volume: ``(N, C, D, H, W)`` gives ``(N, C, D', H', W')``."""


class _MaxUnpool(Variant):
    dimensions: ClassVar[int]

    def __init__(self, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0) -> None:
        super().__init__()
        count = self.dimensions
        self.kernel_size: tuple[int, ...] = per_dimension(kernel_size, count)
        self.stride: tuple[int, ...] = per_dimension(kernel_size if stride is None else stride, count)
        self.padding: tuple[int, ...] = per_dimension(padding, count)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The maxima at their places, zeros elsewhere; ``output_size`` picks a size that the stride leaves open."""
        function = getattr(F, f"max_unpool{self.dimensions}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool, dimensions=1):
    """Lay maxima back where a :class:`MaxPool1d` found them: ``(N, C, L)`` gives ``(N, C, L')``."""


class MaxUnpool2d(_MaxUnpool, dimensions=2):
    """Lay maxima back where a :class:`MaxPool2d` found them: ``(N, C, H, W)`` gives ``(N, C, H', W')``."""


class MaxUnpool3d(_MaxUnpool, dimensions=3):
    """Lay maxima back where a :class:`MaxPool3d` found them: ``(N, C, D, H, W)`` gives ``(N, C, D', H', W')``."""


# PyTorch's names of the base classes.
_AvgPoolNd, _LPPoolNd, _MaxUnpoolNd = _AvgPool, _LPPool, _MaxUnpool
_AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd = _AdaptivePool, _AdaptiveMaxPool
