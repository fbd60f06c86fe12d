"""Padding: what stands around the last dimensions."""

from __future__ import annotations

from typing import ClassVar

from gradwire_protocol.errors import ArgumentValueError

from .._core.context.argument_types import Extents
from .._core.tensor.tensor import Tensor
from . import functional as F
from .sizes import per_dimension
from .variants import Variant


class _Pad(Variant):
    """``padding`` is one int, or (before, after) for each dimension, the last dimension first."""

    dimensions: ClassVar[int]
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: Extents) -> None:
        super().__init__()
        self.padding: tuple[int, ...] = per_dimension(padding, 2 * self.dimensions)

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions extended."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: Extents, value: float) -> None:
        super().__init__(padding)
        self.value: float = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions extended."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPad(_Pad, mode="reflect"):
    pass


class _ReplicationPad(_Pad, mode="replicate"):
    pass


class _CircularPad(_Pad, mode="circular"):
    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions extended."""
        count = self.dimensions
        if input.ndim not in (count + 1, count + 2):
            raise ArgumentValueError(
                f"{type(self).__name__} takes {count + 1} or {count + 2} dimensions, the input's shape is "
                f"{list(input.shape)}"
            )
        return super().forward(input)


class ConstantPad1d(_ConstantPad, dimensions=1):
    """``value`` around the last dimension."""


class ConstantPad2d(_ConstantPad, dimensions=2):
    """``value`` around the last two dimensions."""


class ConstantPad3d(_ConstantPad, dimensions=3):
    """``value`` around the last three dimensions."""


class ZeroPad1d(_Pad, dimensions=1):
    """Zeros around the last dimension."""


class ZeroPad2d(_Pad, dimensions=2):
    """Zeros around the last two dimensions."""


class ZeroPad3d(_Pad, dimensions=3):
    """Zeros around the last three dimensions."""


class ReflectionPad1d(_ReflectionPad, dimensions=1):
    """The last dimension, mirrored at its outermost elements."""


class ReflectionPad2d(_ReflectionPad, dimensions=2):
    """The last two dimensions, mirrored at their outermost elements."""


class ReflectionPad3d(_ReflectionPad, dimensions=3):
    """The last three dimensions, mirrored at their outermost elements."""


class ReplicationPad1d(_ReplicationPad, dimensions=1):
    """The last dimension, with its outermost elements repeated."""


class ReplicationPad2d(_ReplicationPad, dimensions=2):
    """The last two dimensions, with their outermost elements repeated."""


class ReplicationPad3d(_ReplicationPad, dimensions=3):
    """The last three dimensions, with their outermost elements repeated."""


class CircularPad1d(_CircularPad, dimensions=1):
    """The last dimension, continued from the other end."""


class CircularPad2d(_CircularPad, dimensions=2):
    """The last two dimensions, continued from the other end."""


class CircularPad3d(_CircularPad, dimensions=3):
    """The last three dimensions, continued from the other end."""


# PyTorch's names of the base classes.
_ConstantPadNd, _ReflectionPadNd = _ConstantPad, _ReflectionPad
_ReplicationPadNd, _CircularPadNd = _ReplicationPad, _CircularPad
