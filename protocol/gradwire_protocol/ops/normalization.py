"""Normalization by mean and variance over layers, batches, groups and instances, and by norms."""

from __future__ import annotations

from math import prod

from ..autocast import GPU_FLOAT32, NORMALIZING
from ..dtypes import DType, float32
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, Unsupported
from ..meta import UNKNOWN, Inference, Meta, Shape, meta, new
from ..promotion import ScalarKind, join
from ..shapes import (
    broadcast,
    canonical_dim,
    canonical_dims,
    channels_last_stride,
    check_size,
    common_device,
    like,
    reduced_shape,
)
from ..table import Float, Real, Scalar, Tensor, gradients, op
from .matrix import fits


def _need_real(name: str, dtype: DType) -> DType:
    """The dtype that statistics are computed in and kept in."""
    if not dtype.is_floating_point:
        raise Unsupported(f"{name} is not defined on {dtype.name}")
    return float32 if dtype.is_low_precision else dtype


def _need_parameters(name: str, self: Meta, *parameters: Meta | None) -> None:
    """Parameters have the input's dtype; all of a half precision input's may be float32 instead.

    Raises:
        DTypeError: listing the dtypes.
    """
    given = [p.dtype for p in parameters if p is not None]
    allowed = (self.dtype, float32) if self.dtype.is_low_precision else (self.dtype,)
    if any(dtype not in allowed or dtype is not given[0] for dtype in given):
        listed = ", ".join(dtype.name for dtype in given)
        raise DTypeError(f"{name}: parameters of {listed} do not match an input of {self.dtype.name}")


def _normalized(name: str, self: Meta, shape: Shape, *parameters: Meta | None) -> int:
    """Check the normalized shape against the input and its parameters; how many dimensions it has."""
    if not shape:
        raise ArgumentError(f"{name}: normalized_shape must have at least 1 dimension")
    check_size(shape)
    count = len(shape)
    if self.ndim < count or not all(fits(n, m) for n, m in zip(self.shape[-count:], shape, strict=True)):
        raise ShapeError(f"{name}: an input of shape {list(self.shape)} does not end in normalized_shape {list(shape)}")
    for parameter in parameters:
        if parameter is not None and parameter.shape != shape:
            raise ShapeError(
                f"{name}: a parameter of shape {list(parameter.shape)} does not match normalized_shape {list(shape)}"
            )
    return count


@op(grad_fn="NativeLayerNormBackward0", exposed=("function", "nn.functional"), total=True, autocast=NORMALIZING)
@gradients(
    self=(
        "((s := grad if weight is None else grad * weight) - mean_dim(s) - (v := (t := self - mean_dim(self))"
        " * (u := rsqrt(mean_dim(t * t) + c))) * mean_dim(s * v)) * u"
    ),
    weight=(
        "sum_to_size.ViewBackward0(grad * v) if self.ndim > 1 or is_empty(self)"
        " else sum_to_size.AliasBackward0(grad * v)"
    ),
    bias="sum_to_size.ViewBackward0(grad) if self.ndim > 1 or is_empty(self) else sum_to_size.AliasBackward0(grad)",
    saves="self weight result1 result2",
)
def layer_norm(
    self: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Inference:  # fmt: skip
    """Shift and scale to mean 0 and variance 1 over the last dimensions, which are ``normalized_shape``; then multiply
    by ``weight`` and add ``bias``, both of that shape.

    ``eps`` is added to the variance, which is the biased one. Floating point only; parameters have the input's
    dtype, or float32 where it is a half precision one.
    """
    # What backward needs, mean and reciprocal deviation, are results beyond the first, which no caller sees.
    return _layers("layer_norm", self, normalized_shape, weight, bias)


def _layers(name: str, self: Meta, normalized_shape: Shape, weight: Meta | None, bias: Meta | None) -> Inference:
    count = _normalized(name, self, normalized_shape, weight, bias)
    statistics = _need_real(name, self.dtype)
    _need_parameters(name, self, weight, bias)
    device = common_device(self, weight, bias)
    lead = (*self.shape[:-count], *(1,) * count)
    kept = meta(lead, statistics, device)
    return Inference((meta(self.shape, self.dtype, device), kept, kept), statistics)


@op(results=3, exposed=(), total=True, underived=("self", "weight", "bias"))
def layer_norm_training(
    self: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Inference:  # fmt: skip
    """:func:`layer_norm` and what :func:`layer_norm_backward` takes: mean and reciprocal standard deviation."""
    return _layers("layer_norm_training", self, normalized_shape, weight, bias)


def _need_gradient(name: str, grad: Meta, self: Meta) -> None:
    """Check that a gradient is one for a result of the input's shape."""
    _need_real(name, grad.dtype)
    if grad.shape != self.shape:
        raise ShapeError(f"{name}: a gradient of shape {list(grad.shape)} does not fit an input of {list(self.shape)}")


def _need_statistics(name: str, self: Meta, weight: Meta | None, *statistics: Meta) -> None:
    """Check that statistics have a number for each row of the input, and a weight one for each of a row's elements."""
    first = statistics[0]
    if weight is not None:
        rows = self.ndim - weight.ndim
        if not 0 <= rows < self.ndim or weight.shape != self.shape[rows:]:
            raise ShapeError(
                f"{name}: a weight of shape {list(weight.shape)} is not for the last dimensions of {list(self.shape)}"
            )
    else:
        rows = next((i for i, (n, m) in enumerate(zip(first.shape, self.shape)) if n != m), self.ndim - 1)
    wanted = (*self.shape[:rows], *(1,) * (self.ndim - rows))
    for kept in statistics:
        _need_real(name, kept.dtype)
        if kept.shape != wanted or kept.shape != first.shape or not self.ndim:
            raise ShapeError(
                f"{name}: statistics of shape {list(kept.shape)} do not have a number for each row of an input of "
                f"{list(self.shape)}, with an extent of 1 for each dimension that is normalized"
            )


@op(results=None, exposed=(), total=True, underived=("grad", "self", "mean", "rstd", "weight"))
def layer_norm_backward(
    grad: Tensor, self: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None = None, bias: bool = False
) -> Inference:
    """The gradients of :func:`layer_norm` for its input and, with a weight, for that and with ``bias`` for a bias.
    ``mean`` and ``rstd`` are those of :func:`layer_norm_training`."""
    name = "layer_norm_backward"
    statistics = _need_real(name, self.dtype)
    _need_gradient(name, grad, self)
    _need_statistics(name, self, weight, mean, rstd)
    device = common_device(grad, self, mean, rstd, weight)
    outs = [meta(self.shape, self.dtype, device)]
    if weight is not None:
        _need_parameters(name, self, weight)
        outs += [meta(weight.shape, weight.dtype, device)] * (2 if bias else 1)
    return Inference(tuple(outs), statistics)


@op(grad_fn="MulBackward0", exposed=("function", "nn.functional"), autocast=NORMALIZING)
@gradients(
    self=(
        "((s := grad if weight is None else grad * weight) - (u := self * (t := rsqrt(mean_dim(self * self)"
        " + c))) * mean_dim(s * u)) * t"
    ),
    weight="grad * u",
    saves="self weight result1",
    broadcasts=("weight",),
)
def rms_norm(
    self: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, eps: float | None = None
) -> Inference:
    """Divide by the root of the mean square over the last dimensions, which are ``normalized_shape``; then multiply by
    ``weight``. ``eps``, by default the dtype's smallest step from 1, is added to the mean square. Floating point only.
    """
    return _root_mean_squares("rms_norm", self, normalized_shape, weight)


def _root_mean_squares(name: str, self: Meta, normalized_shape: Shape, weight: Meta | None) -> Inference:
    count = _normalized(name, self, normalized_shape, weight)
    statistics = _need_real(name, self.dtype)
    if weight is not None:
        statistics = join(statistics, _need_real(name, weight.dtype))
    device = common_device(self, weight)
    kept = meta((*self.shape[:-count], *(1,) * count), statistics, device)
    node = "MulBackward0" if self.contiguous else "CloneBackward0"
    if self.dtype is not statistics:
        node = "ToCopyBackward0"
    return Inference((meta(self.shape, self.dtype, device), kept), statistics, None, node)


@op(results=2, exposed=(), underived=("self", "weight"))
def rms_norm_training(
    self: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, eps: float | None = None
) -> Inference:
    """:func:`rms_norm` and what :func:`rms_norm_backward` takes: the reciprocal root of the mean square."""
    return _root_mean_squares("rms_norm_training", self, normalized_shape, weight)


@op(results=None, exposed=(), underived=("grad", "self", "rstd", "weight"))
def rms_norm_backward(grad: Tensor, self: Tensor, rstd: Tensor, weight: Tensor | None = None) -> Inference:
    """The gradients of :func:`rms_norm` for its input and, where there is one, for the weight. ``rstd`` is that of
    :func:`rms_norm_training`."""
    name = "rms_norm_backward"
    statistics = _need_real(name, self.dtype)
    _need_gradient(name, grad, self)
    _need_statistics(name, self, weight, rstd)
    device = common_device(grad, self, rstd, weight)
    outs = [meta(self.shape, self.dtype, device)]
    if weight is not None:
        statistics = join(statistics, _need_real(name, weight.dtype))
        outs.append(meta(weight.shape, weight.dtype, device))
    return Inference(tuple(outs), statistics)


# Batches


def _need_channels(name: str, self: Meta, **parameters: Meta | None) -> int:
    """Check that parameters have one element per channel; the number of channels."""
    if self.ndim < 2:
        canonical_dim(1, self.ndim)  # raises IndexError, like PyTorch
    channels = self.shape[1]
    for label, parameter in parameters.items():
        if parameter is not None and (parameter.ndim != 1 or not fits(parameter.shape[0], channels)):
            raise ShapeError(
                f"{name}: {label} of shape {list(parameter.shape)} does not match {channels} channels of an input of "
                f"shape {list(self.shape)}"
            )
    return channels


def _need_several(name: str, shape: Shape) -> None:
    if shape[0] * prod(shape[2:]) == 1:
        raise ArgumentValueError(f"{name}: training needs more than 1 value per channel, shape {list(shape)} has 1")


def _need_running(name: str, mean: Meta | None, var: Meta | None, training: bool) -> None:
    if not training and (mean is None or var is None):
        raise ArgumentError(f"{name}: running_mean and running_var must be given where the input's own are not used")
    if (mean is None) != (var is None):
        raise ArgumentValueError(f"{name}: running_mean and running_var are given both or neither")


def _batch_result(name: str, self: Meta, *parameters: Meta | None) -> tuple[Meta, DType]:
    statistics = _need_real(name, self.dtype)
    _need_parameters(name, self, *parameters)
    stride = channels_last_stride(self, self.shape)
    return meta(self.shape, self.dtype, common_device(self, *parameters), stride), statistics


@op(
    grad_fn="NativeBatchNormBackward0", differentiable=("self", "weight", "bias"),
    underived=("running_mean", "running_var"), exposed=("nn.functional",),
)  # fmt: skip
@gradients(
    self="opaque(self, weight) if training else opaque(weight)",
    weight="opaque(self)",
    bias="opaque()",
    saves="self weight",
)
def batch_norm(
    self: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: Float = 0.1, eps: float = 1e-5,
) -> Inference:  # fmt: skip
    """Shift and scale each channel (dimension 1) to mean 0 and variance 1; then multiply by ``weight``, add ``bias``.

    In ``training`` mean and (biased) variance are the batch's, and ``running_mean`` and ``running_var`` move towards
    them (the variance unbiased) by ``momentum``, in place; otherwise the running ones are used. A single value per
    channel raises ValueError in training. Floating point only.
    """
    if (training and eps <= 0) or eps < 0:
        least = "positive in training" if training else "at least 0"
        raise ArgumentValueError(f"batch_norm: eps must be {least}, not {eps}")
    if self.shape == (0,):
        return like(self, grad_fn="CloneBackward0")
    _need_channels("batch_norm", self, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    _need_running("batch_norm", running_mean, running_var, training)
    if training:
        _need_several("batch_norm", self.shape)
    out, _ = _batch_result("batch_norm", self, weight, bias, running_mean, running_var)
    return Inference((out,))


@op(grad_fn="NativeBatchNormBackward0", results=3, exposed=(), total=True)
@gradients(
    self="add(grad, grad1, grad2, self) if weight is None else add(grad, grad1, grad2, self, weight)",
    weight="sum_dim(grad * ((s := self - mean_dim(self)) * rsqrt(mean_dim(s * s) + c)))",
    bias="sum_dim(grad)",
    saves="self weight result1 result2",
)
def batch_norm_training(
    self: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Inference:
    """:func:`batch_norm` by the batch's own statistics, which are returned too: mean and biased variance."""
    channels = _need_channels("batch_norm_training", self, weight=weight, bias=bias)
    out, statistics = _batch_result("batch_norm_training", self, weight, bias)
    kept = meta((channels,), statistics, out.device)
    return Inference((out, kept, kept), statistics)


@op(
    grad_fn="NativeBatchNormBackward0", differentiable=("self", "weight", "bias"), underived=("mean", "var"), exposed=()
)  # fmt: skip
@gradients(
    self="grad * reshape((s := rsqrt(var + c)) if weight is None else s * weight)",
    weight="sum_dim(grad * ((self - reshape(mean)) * reshape(s)))",
    bias="sum_dim(grad)",
    saves="self mean var weight",
)
def batch_norm_inference(
    self: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Inference:  # fmt: skip
    """:func:`batch_norm` by given statistics."""
    _need_channels("batch_norm_inference", self, mean=mean, var=var, weight=weight, bias=bias)
    out, statistics = _batch_result("batch_norm_inference", self, weight, bias, mean, var)
    return Inference((out,), statistics)


@op(results=3, exposed=(), total=True, underived=("grad", "self", "mean", "var", "weight"))
def batch_norm_backward(
    grad: Tensor, self: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, training: bool = True,
    eps: float = 1e-5,
) -> Inference:  # fmt: skip
    """The gradients of :func:`batch_norm` for input, weight and bias, by the batch's own statistics or given ones."""
    name = "batch_norm_backward"
    channels = _need_channels(name, self, mean=mean, var=var, weight=weight)
    statistics = _need_real(name, self.dtype)
    _need_gradient(name, grad, self)
    _need_parameters(name, self, weight)
    for kept in (mean, var):
        _need_real(name, kept.dtype)
    device, stride = common_device(grad, self, mean, var, weight), channels_last_stride(self, self.shape)
    of_channels = meta((channels,), weight.dtype if weight is not None else statistics, device)
    return Inference((meta(self.shape, self.dtype, device, stride), of_channels, of_channels), statistics)


@op(
    grad_fn="ViewBackward0", differentiable=("self", "weight", "bias"), underived=("running_mean", "running_var"),
    exposed=("nn.functional",),
)  # fmt: skip
@gradients(
    self="opaque(self, weight) if use_input_stats else opaque(weight)",
    weight="opaque(self)",
    bias="opaque()",
    saves="self weight",
)
def instance_norm(
    self: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: Float = 0.1, eps: float = 1e-5,
) -> Inference:  # fmt: skip
    """:func:`batch_norm` of every sample by itself: mean and variance are over the dimensions after the second."""
    if self.ndim < 2 or (use_input_stats and prod(self.shape[2:]) == 1):
        raise ArgumentValueError(
            f"instance_norm: a sample needs more than 1 value per channel, the input has shape {list(self.shape)}"
        )
    _need_channels("instance_norm", self, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    _need_running("instance_norm", running_mean, running_var, use_input_stats)
    _need_parameters("instance_norm", self, weight, bias, running_mean, running_var)
    _need_real("instance_norm", self.dtype)
    return new(self.shape, self.dtype, common_device(self, weight, bias))


# Groups


@op(grad_fn="NativeGroupNormBackward0", exposed=("function", "nn.functional"), autocast=NORMALIZING)
@gradients(
    self="reshape(grad, self) if weight is None else reshape(grad, self, weight)",
    weight="sum_dim(grad * reshape((s := reshape(self) - mean_dim(reshape(self))) * rsqrt(mean_dim(s * s) + c)))",
    bias="sum_dim(grad)",
    saves="self weight result1 result2",
)
def group_norm(
    self: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Inference:
    """Shift and scale each group of channels of each sample to mean 0 and variance 1; then multiply by ``weight`` and
    add ``bias``, which have one element per channel. Floating point only."""
    return _groups("group_norm", self, num_groups, weight, bias)


def _need_groups(name: str, self: Meta, num_groups: int) -> None:
    if self.ndim < 2:
        raise ShapeError(f"{name}: the input must have at least 2 dimensions; its shape is {list(self.shape)}")
    if num_groups <= 0 or self.shape[1] % num_groups:
        raise ArgumentError(
            f"{name}: {self.shape[1]} channels of shape {list(self.shape)} do not divide into {num_groups} groups"
        )


def _groups(name: str, self: Meta, num_groups: int, weight: Meta | None, bias: Meta | None) -> Inference:
    _need_groups(name, self, num_groups)
    channels = _need_channels(name, self, weight=weight, bias=bias)
    if UNKNOWN not in self.shape:
        _need_several(name, (self.shape[0] * channels // num_groups, num_groups, *self.shape[2:]))
    statistics = _need_real(name, self.dtype)
    _need_parameters(name, self, weight, bias)
    device = common_device(self, weight, bias)
    kept = meta((self.shape[0], num_groups), statistics, device)
    out = meta(self.shape, self.dtype, device, channels_last_stride(self, self.shape))
    return Inference((out, kept, kept), statistics)


@op(results=3, exposed=(), underived=("self", "weight", "bias"))
def group_norm_training(
    self: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Inference:
    """:func:`group_norm` and what :func:`group_norm_backward` takes: mean and reciprocal standard deviation of each
    group of each sample."""
    return _groups("group_norm_training", self, num_groups, weight, bias)


@op(results=3, exposed=(), underived=("grad", "self", "mean", "rstd", "weight"))
def group_norm_backward(
    grad: Tensor, self: Tensor, mean: Tensor, rstd: Tensor, num_groups: int, weight: Tensor | None = None
) -> Inference:
    """The gradients of :func:`group_norm` for input, weight and bias. ``mean`` and ``rstd`` are those of
    :func:`group_norm_training`."""
    name = "group_norm_backward"
    _need_groups(name, self, num_groups)
    channels = _need_channels(name, self, weight=weight)
    statistics = _need_real(name, self.dtype)
    _need_gradient(name, grad, self)
    _need_parameters(name, self, weight)
    for kept in (mean, rstd):
        _need_real(name, kept.dtype)
        if kept.shape != (self.shape[0], num_groups):
            raise ShapeError(
                f"{name}: statistics of shape {list(kept.shape)} do not have a number for each of the {num_groups} "
                f"groups of {self.shape[0]} samples"
            )
    device = common_device(grad, self, mean, rstd, weight)
    of_channels = meta((channels,), weight.dtype if weight is not None else statistics, device)
    return Inference((meta(self.shape, self.dtype, device), of_channels, of_channels), statistics)


# Norms


@op(grad_fn="DivBackward0", exposed=("nn.functional",), autocast=GPU_FLOAT32)
@gradients("opaque")
def normalize(self: Tensor, p: Real = 2.0, dim: int | tuple[int, ...] = 1, eps: Scalar = 1e-12) -> Inference:
    """Divide by the norm of order ``p`` over ``dim``, or by ``eps`` where that is larger."""
    canonical_dims(dim, self.ndim)
    if eps is ScalarKind.COMPLEX:
        raise Unsupported("normalize: eps is a bound of the norms, which no complex number is")
    if not self.dtype.is_floating_point and not self.dtype.is_complex:
        raise DTypeError(f"normalize needs a floating point or complex tensor, got {self.dtype.name}")
    return like(self)


@op(grad_fn="SumBackward1", exposed=("function", "nn.functional"), autocast=GPU_FLOAT32)
@gradients("opaque", saves="x1 x2")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: Float = 1e-8) -> Inference:
    """The cosine of the angle between vectors along ``dim``, with broadcasting and promotion: their product divided by
    both norms, each at least ``eps``."""
    shape = broadcast(x1.shape, x2.shape)
    dtype = join(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise DTypeError(f"cosine_similarity needs floating point tensors, got {x1.dtype.name} and {x2.dtype.name}")
    gone = canonical_dim(dim, len(shape))
    return new(reduced_shape(shape, (gone,), False), dtype, common_device(x1, x2)).checking(_check_least_norm)


def _check_least_norm(x1: object, x2: object, dim: int, eps: float) -> None:
    if not eps >= 0:
        raise ArgumentError(f"cosine_similarity: eps is a least norm and cannot be {eps}")
