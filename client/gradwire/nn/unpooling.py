"""Pools undone, pools over windows at random places, and power averages."""

from __future__ import annotations

from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError

from . import functional as F
from .module import Module
from .sizes import per_dimension


class _MaxUnpool(Module):
    dimensions: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        count = self.dimensions
        self.kernel_size = per_dimension(kernel_size, count)
        self.stride = per_dimension(kernel_size if stride is None else stride, count)
        self.padding = per_dimension(padding, count)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """The maxima at their places, zeros elsewhere; ``output_size`` picks a size that the stride leaves open."""
        function = getattr(F, f"max_unpool{self.dimensions}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Lay maxima back where a :class:`MaxPool1d` found them: ``(N, C, L)`` gives ``(N, C, L')``."""

    dimensions = 1


class MaxUnpool2d(_MaxUnpool):
    """Lay maxima back where a :class:`MaxPool2d` found them: ``(N, C, H, W)`` gives ``(N, C, H', W')``."""

    dimensions = 2


class MaxUnpool3d(_MaxUnpool):
    """Lay maxima back where a :class:`MaxPool3d` found them: ``(N, C, D, H, W)`` gives ``(N, C, D', H', W')``."""

    dimensions = 3


class _FractionalMaxPool(Module):
    dimensions: ClassVar[int]

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        count, name = self.dimensions, type(self).__name__
        self.kernel_size = per_dimension(kernel_size, count)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else per_dimension(output_size, count)
        self.output_ratio = None if output_ratio is None else per_dimension(output_ratio, count)
        if (self.output_size is None) == (self.output_ratio is None):
            raise ArgumentValueError(f"{name} takes output_size or output_ratio, and not both")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ArgumentValueError(f"{name}: output_ratio is between 0 and 1, not {output_ratio}")

    def forward(self, input: Any) -> Any:
        """The largest element of each window; with ``return_indices`` also where it was."""
        function = getattr(F, f"fractional_max_pool{self.dimensions}d")
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows at random places of images, which become ``output_size`` or ``output_ratio`` of
    what they were."""

    dimensions = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of windows at random places of volumes, which become ``output_size`` or ``output_ratio`` of
    what they were."""

    dimensions = 3


class _LPPool(Module):
    dimensions: ClassVar[int]

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        """The root of the sum of powers of each window."""
        function = getattr(F, f"lp_pool{self.dimensions}d")
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The norm of order ``norm_type`` of each window along the last dimension: ``(N, C, L)`` gives ``(N, C, L')``."""

    dimensions = 1


class LPPool2d(_LPPool):
    """The norm of order ``norm_type`` of each window of an image: ``(N, C, H, W)`` gives ``(N, C, H', W')``."""

    dimensions = 2


class LPPool3d(_LPPool):
    """The norm of order ``norm_type`` of each window of a volume: ``(N, C, D, H, W)`` gives ``(N, C, D', H', W')``."""

    dimensions = 3
