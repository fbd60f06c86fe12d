"""Padding: what stands around the last dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError

from . import functional as F
from .module import Module
from .sizes import per_dimension


class _Pad(Module):
    """``padding`` is one int, or (before, after) for each dimension, the last dimension first."""

    dimensions: ClassVar[int]
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = per_dimension(padding, 2 * self.dimensions)

    def forward(self, input: Any) -> Any:
        """The input with its last dimensions extended."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The input with its last dimensions extended."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        """The input with its last dimensions extended."""
        count = self.dimensions
        if input.ndim not in (count + 1, count + 2):
            raise ArgumentValueError(
                f"{type(self).__name__} takes {count + 1} or {count + 2} dimensions, the input's shape is "
                f"{list(input.shape)}"
            )
        return super().forward(input)


class ConstantPad1d(_ConstantPad):
    """``value`` around the last dimension."""

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """``value`` around the last two dimensions."""

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """``value`` around the last three dimensions."""

    dimensions = 3


class ZeroPad1d(_Pad):
    """Zeros around the last dimension."""

    dimensions = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two dimensions."""

    dimensions = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three dimensions."""

    dimensions = 3


class ReflectionPad1d(_ReflectionPad):
    """The last dimension, mirrored at its outermost elements."""

    dimensions = 1


class ReflectionPad2d(_ReflectionPad):
    """The last two dimensions, mirrored at their outermost elements."""

    dimensions = 2


class ReflectionPad3d(_ReflectionPad):
    """The last three dimensions, mirrored at their outermost elements."""

    dimensions = 3


class ReplicationPad1d(_ReplicationPad):
    """The last dimension, with its outermost elements repeated."""

    dimensions = 1


class ReplicationPad2d(_ReplicationPad):
    """The last two dimensions, with their outermost elements repeated."""

    dimensions = 2


class ReplicationPad3d(_ReplicationPad):
    """The last three dimensions, with their outermost elements repeated."""

    dimensions = 3


class CircularPad1d(_CircularPad):
    """The last dimension, continued from the other end."""

    dimensions = 1


class CircularPad2d(_CircularPad):
    """The last two dimensions, continued from the other end."""

    dimensions = 2


class CircularPad3d(_CircularPad):
    """The last three dimensions, continued from the other end."""

    dimensions = 3
