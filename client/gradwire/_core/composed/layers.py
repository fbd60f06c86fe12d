"""Layers under the names that they have beside ``nn.functional``, where PyTorch's arguments are others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..context.argument_types import Extents
from ..dispatch.dispatch import call
from ..surface.creation_like import ones_like
from ..surface.generator import takes_generator
from ..surface.methods import offer
from ..tensor.tensor import Tensor

SAMPLINGS = ("bilinear", "nearest", "bicubic")
BORDERS = ("zeros", "border", "reflection")
REDUCTIONS = ("sum", "mean", "max")

FUNCTIONAL: Final[dict[str, Callable[..., Any]]] = {}
"""``nn.functional``, which fills it: the functions here call it."""


def _of_training(name: str) -> None:
    """Offer a dropout of ``nn.functional`` with its arguments in a row, and its form that writes into the input."""

    def function(input: Tensor, p: float, train: bool) -> Tensor:
        return FUNCTIONAL[name](input, p, train)

    def in_place(input: Tensor, p: float, train: bool) -> Tensor:
        return FUNCTIONAL[name](input, p, train, True)

    function.__name__, in_place.__name__ = name, name + "_"
    function.__doc__ = f":func:`gradwire.nn.functional.{name}` with all arguments given."
    in_place.__doc__ = f"In-place form of :func:`{name}`."
    offer(function, method=False)
    offer(in_place, method=False)


for _name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
    _of_training(_name)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels, the second dimension, with probability ``p`` and scale the others."""
    return call("feature_dropout", input, float(p), True)[0] if train else input


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`feature_dropout`."""
    if train:
        call("mul_", input, call("feature_dropout", ones_like(input), float(p), True)[0])
    return input


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The result of dropout, and a bool mask of what was kept."""
    return tuple(call("dropout", input, float(p), train is not False))


@takes_generator
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """``x`` where positive, else ``slope * x``: in training with slopes uniform in [lower, upper), else their mean."""
    return call("rrelu", input, float(lower), float(upper), training)[0]


def _chosen(name: str, what: str, names: tuple[str, ...], number: int) -> str:
    if not 0 <= number < len(names):
        listed = ", ".join(f"{i} ({n})" for i, n in enumerate(names))
        raise ArgumentValueError(f"{name}: {what} is {listed}, not {number}")
    return names[number]


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """:func:`gradwire.nn.functional.grid_sample` with its modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros,
    1 border, 2 reflection."""
    mode = _chosen("grid_sampler", "interpolation_mode", SAMPLINGS, interpolation_mode)
    border = _chosen("grid_sampler", "padding_mode", BORDERS, padding_mode)
    return call("grid_sampler", input, grid, mode, border, align_corners)


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Rows of a table reduced bag by bag, each index's bag, the bags' sizes and the rows that maxima come from.

    ``mode`` is 0 (sum), 1 (mean) or 2 (max). See :func:`gradwire.nn.functional.embedding_bag`.
    """
    if sparse:
        raise NotImplementedError("embedding_bag: sparse gradients are not supported by gradwire")
    how = _chosen("embedding_bag", "mode", REDUCTIONS, mode)
    row = -1 if padding_idx is None else padding_idx % weight.shape[0]
    rest = (scale_grad_by_freq, per_sample_weights, include_last_offset, row)
    return tuple(call("embedding_bag", weight, indices, offsets, how, *rest))


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """:func:`gradwire.nn.functional.batch_norm` with its arguments in another order."""
    return call("batch_norm", input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """:func:`gradwire.nn.functional.instance_norm` with its arguments in another order."""
    return call("instance_norm", input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Extents, padding: Extents, dilation: Extents,
    transposed: bool, output_padding: Extents, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution, or its transpose, over as many dimensions as the weight has beyond two: one to three."""
    count = weight.ndim - 2
    if count not in (1, 2, 3):
        raise ArgumentError(f"convolution: a weight has 3 to 5 dimensions, its shape is {list(weight.shape)}")
    if transposed:
        name = f"conv_transpose{count}d"
        return call(name, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return call(f"conv{count}d", input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first dimension: ``(L, N, C)`` with a weight ``(K, C, O)`` gives ``(L', N, O)``."""
    found = call("conv1d", call("permute", input, (1, 2, 0)), call("permute", weight, (2, 1, 0)), bias, 1, pad)
    return call("contiguous", call("permute", found, (2, 0, 1)))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum_ij input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]`` for inputs of equal leading shape."""
    return call("bilinear", input1, input2, weight, bias)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of the differences along the last dimension; ``eps`` is added to each difference."""
    return call("norm", call("add", call("sub", x1, x2), eps), p, (-1,), keepdim)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """:func:`channel_shuffle` under another name."""
    return call("channel_shuffle", input, groups)


@takes_generator
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """In-place form of :func:`rrelu`."""
    call("mul_", input, call("rrelu", input, float(lower), float(upper), training)[1])
    return input


for _function in (
    native_channel_shuffle, feature_dropout, feature_dropout_, native_dropout, rrelu, rrelu_, grid_sampler,
    embedding_bag, batch_norm, instance_norm, convolution, conv_tbc, bilinear, pairwise_distance,
):  # fmt: skip
    offer(_function, method=False)
