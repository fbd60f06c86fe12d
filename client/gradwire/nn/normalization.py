"""Normalisation layers."""

from __future__ import annotations

import sys
import warnings
from typing import Any, ClassVar

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentValueError, ShapeError

from .._core.context.argument_types import Device, Extents
from .._core.context.call_sites import user_depth
from .._core.context.modes import no_grad
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.surface.creation import empty, ones, tensor, zeros
from .._core.tensor.tensor import Tensor
from . import functional as F
from . import init
from .sizes import as_shape
from .variants import Variant


class LayerNorm(Module):
    """Normalise over the last dimensions to mean 0 and variance 1, then scale and shift each element.

    ``weight`` and ``bias`` have the shape that is normalised over; ``elementwise_affine=False`` leaves both out,
    ``bias=False`` the shift.
    """

    weight: Parameter
    bias: Parameter

    def __init__(
        self, normalized_shape: Extents, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape: tuple[int, ...] = as_shape(normalized_shape)
        self.eps: float = eps
        self.elementwise_affine: bool = elementwise_affine
        kept = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        for name, wanted in kept.items():
            made = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to no scale and no shift."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """``(..., *normalized_shape)`` to the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root of the mean square over the last dimensions, then scale each element."""

    weight: Parameter

    def __init__(
        self, normalized_shape: Extents, eps: float | None = None, elementwise_affine: bool = True,
        device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape: tuple[int, ...] = as_shape(normalized_shape)
        self.eps: float | None = eps
        self.elementwise_affine: bool = elementwise_affine
        made = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to no scale."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """``(..., *normalized_shape)`` to the same shape."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalise each sample over groups of channels, then scale and shift each channel."""

    weight: Parameter
    bias: Parameter

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Device = None,
        dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentValueError(f"{num_channels} channels cannot be split into {num_groups} groups")
        self.num_groups: int = num_groups
        self.num_channels: int = num_channels
        self.eps: float = eps
        self.affine: bool = affine
        for name, wanted in {"weight": affine, "bias": affine and bias}.items():
            made = Parameter(empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to no scale and no shift."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """``(N, num_channels, ...)`` to the same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        shown = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}"


class _NormBase(Variant):
    """Normalise each channel over the batch, then scale and shift it.

    In training the batch's own mean and variance are used, and remembered as running averages (``running_mean``,
    ``running_var``), which take their place in evaluation. ``momentum`` is the weight of the newest batch; None
    averages all batches equally, which costs a round trip per batch to learn their number.
    """

    weight: Parameter
    bias: Parameter
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    dimensions: ClassVar[tuple[int, ...]]
    _version = 2  # the first one did not count batches

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Device = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features: int = num_features
        self.eps: float = eps
        self.momentum: float | None = momentum
        self.affine: bool = affine
        self.track_running_stats: bool = track_running_stats
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        for name, wanted in {"weight": affine, "bias": affine and bias}.items():
            self.register_parameter(name, Parameter(empty(num_features, **options)) if wanted else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **options) if tracked else None)
        batches = tensor(0, dtype=dtypes.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", batches)
        self.reset_parameters()

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        counted = (local_metadata.get("version") or 1) >= 2
        if not counted and self.track_running_stats and f"{prefix}num_batches_tracked" not in state_dict:
            known = self.num_batches_tracked
            state_dict[f"{prefix}num_batches_tracked"] = (
                tensor(0, dtype=dtypes.int64) if known is None or known.is_meta else known
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def reset_running_stats(self) -> None:
        """Forget the batches seen so far."""
        if self.track_running_stats:
            tracked: Any = self  # with tensors, that is
            init.zeros_(tracked.running_mean)
            init.ones_(tracked.running_var)
            init.zeros_(tracked.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Forget the batches, and back to no scale and no shift."""
        self.reset_running_stats()
        _reset_affine(self)

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim not in self.dimensions:
            expected = " or ".join(map(str, self.dimensions))
            raise ArgumentValueError(
                f"{type(self).__name__} takes {expected} dimensions, the input's shape is {list(input.shape)}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """``(N, num_features, ...)`` to the same shape."""
        self._check_input_dim(input)
        weight_of_newest = self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if weight_of_newest is None:
                weight_of_newest = 1.0 / float(self.num_batches_tracked.item())
        averaged = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if averaged else None,
            self.running_var if averaged else None,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            0.0 if weight_of_newest is None else weight_of_newest,
            self.eps,
        )

    def extra_repr(self) -> str:
        shown = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}, track_running_stats={self.track_running_stats}"


class _BatchNorm(_NormBase):
    """What the batch normalisations are, and instance normalisations are not."""


class BatchNorm1d(_BatchNorm, dimensions=(2, 3)):
    """Batch normalisation of ``(N, C)`` or ``(N, C, L)``."""


class BatchNorm2d(_BatchNorm, dimensions=(4,)):
    """Batch normalisation of ``(N, C, H, W)``."""


class BatchNorm3d(_BatchNorm, dimensions=(5,)):
    """Batch normalisation of ``(N, C, D, H, W)``."""


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all ranks of a process group, by default of all ranks there are.

    It takes ``(N, C, ...)``. With one rank, or none, it computes what :class:`BatchNorm1d` and its kin do.
    """

    dimensions = tuple(range(2, 65))

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: Device = None, dtype: DType | None = None,
        *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group: Any = process_group

    def forward(self, input: Tensor) -> Tensor:
        """``(N, num_features, ...)`` to the same shape."""
        groups = sys.modules.get("gradwire.distributed.process_group")  # a program without it has one rank
        if groups is None or not groups.is_initialized() or not (self.training or self.running_mean is None):
            return super().forward(input)
        group = groups.member(self.process_group, "SyncBatchNorm")
        if group is None or group.size() == 1:
            return super().forward(input)
        from ..distributed.normalizing import normalize_over_ranks

        self._check_input_dim(input)
        if input.shape[1] != self.num_features:
            raise ShapeError(f"SyncBatchNorm has {self.num_features} channels, the input {input.shape[1]}")
        result, mean, variance = normalize_over_ranks(input, group, self.weight, self.bias, self.eps)
        if self.training and self.running_mean is not None and self.running_var is not None:
            self._keep_averages(self.running_mean, mean, self.running_var, variance)
        return result

    def _keep_averages(self, means: Tensor, mean: Tensor, variances: Tensor, variance: Tensor) -> None:
        """Take the statistics of a batch into the running ones."""
        with no_grad():
            share: Any = self.momentum
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
                if share is None:
                    share = self.num_batches_tracked.reciprocal()
            means.add_((mean.detach() - means) * share)
            variances.add_((variance.detach() - variances) * share)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with every batch normalisation in it replaced by a :class:`SyncBatchNorm` of the same state."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    """Normalise each channel of each sample over its own elements, then scale and shift it, if asked to.

    With ``track_running_stats`` evaluation uses running averages, as :class:`BatchNorm1d` does.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """``(N, num_features, ...)`` or ``(num_features, ...)`` to the same shape."""
        self._check_input_dim(input)
        self._check_channels(input)
        batched = input.ndim == self.dimensions[-1]
        result = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result if batched else result.squeeze(0)

    def _get_no_batch_dim(self) -> int:
        return self.dimensions[0]

    def _check_channels(self, input: Any) -> None:
        channels = input.shape[-self._get_no_batch_dim()]
        if channels == self.num_features:
            return
        differs = f"{type(self).__name__}: the input has {channels} channels, num_features is {self.num_features}"
        if self.affine:
            raise ArgumentValueError(differs)
        warnings.warn(f"{differs}, which nothing but affine=True or running averages look at", stacklevel=user_depth())


class InstanceNorm1d(_InstanceNorm, dimensions=(2, 3)):
    """Instance normalisation of ``(N, C, L)`` or ``(C, L)``."""


class InstanceNorm2d(_InstanceNorm, dimensions=(3, 4)):
    """Instance normalisation of ``(N, C, H, W)`` or ``(C, H, W)``."""


class InstanceNorm3d(_InstanceNorm, dimensions=(4, 5)):
    """Instance normalisation of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""


for _kind in (BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d):
    _kind.__doc__ = f"{_kind.__doc__}\n\n    {(_kind.__base__.__doc__ or '').strip()}"


def _reset_affine(module: Module) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


class LocalResponseNorm(Module):
    """Divide by ``(k + alpha * mean of squares)**beta``, the mean over ``size`` neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size: int = size
        self.alpha: float = alpha
        self.beta: float = beta
        self.k: float = k

    def forward(self, input: Tensor) -> Tensor:
        """``(N, C, ...)`` to the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """:class:`LocalResponseNorm` of images as Torch7 had it: the channel is always in the middle of the window, which
    of an even ``size`` has one channel less, and the first channel stays in the sums of all that come after."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        """``(N, C, H, W)`` to the same shape."""
        if input.ndim != 4:
            raise ArgumentValueError(f"CrossMapLRN2d takes 4 dimensions, the input's shape is {list(input.shape)}")
        reach = (self.size - 1) // 2 + 1
        squares = input * input
        n, channels, *extents = squares.shape
        padded = F.pad(squares, (0, 0, 0, 0, reach - 1, reach - 1)).reshape(n, 1, channels + 2 * reach - 2, -1)
        width = 2 * reach - 1
        sums = (F.avg_pool2d(padded, (width, 1), 1) * width).reshape(n, channels, *extents)
        if channels > reach:
            # As in PyTorch, the first channel stays in the sum once it has entered.
            first = squares[:, :1].expand(n, channels - reach, *extents)
            sums = sums + F.pad(first, (0, 0, 0, 0, reach, 0))
        return input / (sums * (self.alpha / self.size) + self.k) ** self.beta
