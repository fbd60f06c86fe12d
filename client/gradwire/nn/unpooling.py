"""Pools undone: maxima laid back where they were found."""

from __future__ import annotations

from typing import Any, ClassVar

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
