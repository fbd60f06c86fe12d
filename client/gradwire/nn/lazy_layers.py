"""Layers that learn the number of their inputs' features or channels from their first input."""

from __future__ import annotations

from typing import Any, ClassVar

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from .._core.context.argument_types import Device, Extents
from .._core.context.modes import no_grad
from .._core.surface.creation import tensor
from .._core.tensor.tensor import Tensor
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .lazy import LazyModuleMixin, UninitializedBuffer, UninitializedParameter
from .linear import Linear
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` whose ``in_features`` are those of its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Device = None, dtype: DType | None = None) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias: Any = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new initial values, if there is something to draw."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``in_features`` from the input's last extent."""
        features = input.shape[-1]
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = features
                self.weight.materialize((self.out_features, features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if features != self.weight.shape[-1]:
                raise ArgumentError(
                    f"LazyLinear was loaded for {self.weight.shape[-1]} features, the input has {features}"
                )
            self.in_features = features


class _LazyConvolution(LazyModuleMixin):
    """What lazy convolutions have in common."""

    transposed: ClassVar[bool]
    dimensions: ClassVar[int]
    weight: Any
    bias: Any
    in_channels: int
    out_channels: int
    groups: int
    kernel_size: Any

    def _await_channels(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new initial values, if there is something to draw."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]

    def _channels_of(self, input: Any) -> int:
        count = self.dimensions
        if input.ndim not in (count + 1, count + 2):
            raise ArgumentError(
                f"{type(self).__name__} takes {count + 1} dimensions, or {count + 2} with a batch, the input's shape "
                f"is {list(input.shape)}"
            )
        channels = int(input.shape[-count - 1])
        if channels % self.groups or self.out_channels % self.groups:
            raise ArgumentValueError(
                f"{channels} and {self.out_channels} channels cannot be split into {self.groups} groups"
            )
        return channels

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take ``in_channels`` from the input."""
        channels = self._channels_of(input)
        if self.has_uninitialized_params():
            with no_grad():
                self.in_channels = channels
                made, groups = self.out_channels, self.groups
                lead = (channels, made // groups) if self.transposed else (made, channels // groups)
                self.weight.materialize((*lead, *self.kernel_size))
                if self.bias is not None:
                    self.bias.materialize((made,))
                self.reset_parameters()
        if self.in_channels == 0:
            taken = self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups
            if channels != taken:
                raise ArgumentError(f"{type(self).__name__} was loaded for {taken} channels, the input has {channels}")
            self.in_channels = channels


class _LazyForward(_LazyConvolution):
    """Made with the arguments of a convolution but ``in_channels``."""

    def __init__(
        self, out_channels: int, kernel_size: Extents, stride: Extents = 1, padding: Extents = 0, dilation: Extents = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Device = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._await_channels(out_channels, bias, device, dtype)


class LazyConv1d(_LazyForward, Conv1d, cls_to_become=Conv1d):
    """A :class:`Conv1d` whose ``in_channels`` are those of its first input."""


class LazyConv2d(_LazyForward, Conv2d, cls_to_become=Conv2d):
    """A :class:`Conv2d` whose ``in_channels`` are those of its first input."""


class LazyConv3d(_LazyForward, Conv3d, cls_to_become=Conv3d):
    """A :class:`Conv3d` whose ``in_channels`` are those of its first input."""


class _LazyTransposed(_LazyConvolution):
    """Made with the arguments of a transposed convolution but ``in_channels``; they come in another order."""

    def __init__(
        self, out_channels: int, kernel_size: Extents, stride: Extents = 1, padding: Extents = 0,
        output_padding: Extents = 0, groups: int = 1, bias: bool = True, dilation: Extents = 1,
        padding_mode: str = "zeros", device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._await_channels(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d, cls_to_become=ConvTranspose1d):
    """A :class:`ConvTranspose1d` whose ``in_channels`` are those of its first input."""


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d, cls_to_become=ConvTranspose2d):
    """A :class:`ConvTranspose2d` whose ``in_channels`` are those of its first input."""


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d, cls_to_become=ConvTranspose3d):
    """A :class:`ConvTranspose3d` whose ``in_channels`` are those of its first input."""


class _LazyNorm(LazyModuleMixin):
    """What lazy normalisations over batches and instances have in common."""

    num_features: int
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Device = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine: bool = affine
        self.track_running_stats: bool = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked: Tensor | None = tensor(0, dtype=dtypes.int64, device=device)

    def reset_parameters(self) -> None:
        """Forget the batches, and back to no scale and no shift, if there is something to reset."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``num_features`` from the input's second extent."""
        if not self.has_uninitialized_params():
            return
        self.num_features = int(input.shape[1])
        for member in (self.weight, self.bias, self.running_mean, self.running_var):
            if member is not None:
                member.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d, cls_to_become=BatchNorm1d):
    """A :class:`BatchNorm1d` whose ``num_features`` are the channels of its first input."""


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d, cls_to_become=BatchNorm2d):
    """A :class:`BatchNorm2d` whose ``num_features`` are the channels of its first input."""


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d, cls_to_become=BatchNorm3d):
    """A :class:`BatchNorm3d` whose ``num_features`` are the channels of its first input."""


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d, cls_to_become=InstanceNorm1d):
    """An :class:`InstanceNorm1d` whose ``num_features`` are the channels of its first input."""


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d, cls_to_become=InstanceNorm2d):
    """An :class:`InstanceNorm2d` whose ``num_features`` are the channels of its first input."""


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d, cls_to_become=InstanceNorm3d):
    """An :class:`InstanceNorm3d` whose ``num_features`` are the channels of its first input."""
