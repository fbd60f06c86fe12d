"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentValueError

from .._core.context.argument_types import Device, Extents
from .._core.modules.parameter import Parameter
from .._core.surface.creation import empty
from .._core.tensor.tensor import Tensor
from . import functional as F
from . import init
from .sizes import per_dimension
from .variants import Variant

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Variant):
    """What all convolutions have in common: their arguments, parameters and text."""

    bias: Parameter | None
    dimensions: ClassVar[int]
    transposed: ClassVar[bool] = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Extents, stride: Extents, padding: str | Extents,
        dilation: Extents, groups: int, bias: bool, padding_mode: str, device: Device, dtype: DType | None,
        output_padding: Extents = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ArgumentValueError(f"groups must be positive, not {groups}")
        if in_channels % groups or out_channels % groups:
            raise ArgumentValueError(f"{in_channels} and {out_channels} channels cannot be split into {groups} groups")
        if padding_mode not in PADDING_MODES:
            raise ArgumentValueError(f"padding_mode is one of {', '.join(PADDING_MODES)}, not {padding_mode!r}")
        count = self.dimensions
        self.in_channels: int = in_channels
        self.out_channels: int = out_channels
        self.kernel_size: tuple[int, ...] = per_dimension(kernel_size, count)
        self.stride: tuple[int, ...] = per_dimension(stride, count)
        self.padding: str | tuple[int, ...] = padding if isinstance(padding, str) else per_dimension(padding, count)
        self.dilation: tuple[int, ...] = per_dimension(dilation, count)
        self.output_padding: tuple[int, ...] = per_dimension(output_padding, count)
        self.groups: int = groups
        self.padding_mode: str = padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ArgumentValueError(f"padding is ints, 'same' or 'valid', not {padding!r}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ArgumentValueError(f"padding='same' needs a stride of 1, not {self.stride}")
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight: Parameter = Parameter(empty(*channels, *self.kernel_size, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values, uniform between plus and minus ``1 / sqrt(fan_in)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _surround(self) -> tuple[int, ...]:
        """How far each side is extended, from the last dimension on, for the modes that do not pad with zeros."""
        sides: list[int] = []
        for i in reversed(range(self.dimensions)):
            if isinstance(self.padding, str):
                total = self.dilation[i] * (self.kernel_size[i] - 1) if self.padding == "same" else 0
                sides += [total // 2, total - total // 2]
            else:
                sides += [self.padding[i]] * 2
        return tuple(sides)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function = getattr(F, f"conv{self.dimensions}d")
        if self.padding_mode == "zeros":
            return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._surround(), mode=self.padding_mode)
        return function(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """``(N, in_channels, ...)`` or ``(in_channels, ...)`` to the same with ``out_channels``."""
        return self._conv_forward(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        ones, zeros = (1,) * self.dimensions, (0,) * self.dimensions
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, value, usual in (
            ("padding", self.padding, zeros), ("dilation", self.dilation, ones),
            ("output_padding", self.output_padding, zeros), ("groups", self.groups, 1),
        ):  # fmt: skip
            if value != usual:
                parts.append(f"{name}={value}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Forward(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Extents, stride: Extents = 1,
        padding: str | Extents = 0, dilation: Extents = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )


class Conv1d(_Forward, dimensions=1):
    """A convolution along one dimension: ``(N, C, L)`` gives ``(N, out_channels, L')``."""


class Conv2d(_Forward, dimensions=2):
    """A convolution over images: ``(N, C, H, W)`` gives ``(N, out_channels, H', W')``."""


class Conv3d(_Forward, dimensions=3):
    """A convolution through volumes: ``(N, C, D, H, W)`` gives ``(N, out_channels, D', H', W')``."""


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Extents, stride: Extents = 1, padding: Extents = 0,
        output_padding: Extents = 0, groups: int = 1, bias: bool = True, dilation: Extents = 1,
        padding_mode: str = "zeros", device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ArgumentValueError(f"a transposed convolution pads with zeros only, not {padding_mode!r}")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device,
            dtype, output_padding,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution; ``output_size`` picks one of the sizes that a stride leaves open."""
        function = getattr(F, f"conv_transpose{self.dimensions}d")
        extra = self.output_padding if output_size is None else self._missing(input, tuple(output_size))
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _missing(self, input: Any, wanted: tuple[int, ...]) -> tuple[int, ...]:
        count = self.dimensions
        extra = []
        for i, (size, extent) in enumerate(zip(wanted[-count:], input.shape[-count:], strict=True)):
            reach = self.dilation[i] * (self.kernel_size[i] - 1) + 1
            smallest = (extent - 1) * self.stride[i] - 2 * self.padding[i] + reach
            if not smallest <= size < smallest + self.stride[i]:
                raise ArgumentValueError(
                    f"output_size {wanted} is out of reach: dimension {i} can be {smallest} to "
                    f"{smallest + self.stride[i] - 1}"
                )
            extra.append(size - smallest)
        return tuple(extra)


class ConvTranspose1d(_ConvTransposeNd, dimensions=1):
    """The transpose of a :class:`Conv1d` as a linear map."""


class ConvTranspose2d(_ConvTransposeNd, dimensions=2):
    """The transpose of a :class:`Conv2d` as a linear map."""


class ConvTranspose3d(_ConvTransposeNd, dimensions=3):
    """The transpose of a :class:`Conv3d` as a linear map."""


_ConvTransposeMixin = _ConvTransposeNd  # its name in older versions of PyTorch
