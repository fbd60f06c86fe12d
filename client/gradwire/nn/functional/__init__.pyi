# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from collections.abc import Sequence
from gradwire._core.composed.layers import conv_tbc as conv_tbc, native_channel_shuffle as native_channel_shuffle
from gradwire._core.context.argument_types import Extents
from gradwire._core.surface.methods import name_after as name_after
from gradwire._core.tensor.tensor import Tensor
from gradwire.nn import grad as grad
from gradwire.nn.functional import attention as attention, generated as generated, layers as layers, losses as losses, pooling as pooling, resampling as resampling, tables as tables
from gradwire.nn.functional.attention import multi_head_attention_forward as multi_head_attention_forward
from gradwire.nn.functional.layers import alpha_dropout as alpha_dropout, bilinear as bilinear, cosine_similarity as cosine_similarity, dropout as dropout, dropout1d as dropout1d, dropout2d as dropout2d, dropout3d as dropout3d, feature_alpha_dropout as feature_alpha_dropout, fold as fold, glu as glu, gumbel_softmax as gumbel_softmax, local_response_norm as local_response_norm, log_softmax as log_softmax, pairwise_distance as pairwise_distance, rms_norm as rms_norm, rrelu as rrelu, rrelu_ as rrelu_, softmax as softmax, softmin as softmin, unfold as unfold
from gradwire.nn.functional.losses import binary_cross_entropy as binary_cross_entropy, binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, cosine_embedding_loss as cosine_embedding_loss, cross_entropy as cross_entropy, ctc_loss as ctc_loss, gaussian_nll_loss as gaussian_nll_loss, hinge_embedding_loss as hinge_embedding_loss, huber_loss as huber_loss, kl_div as kl_div, l1_loss as l1_loss, linear_cross_entropy as linear_cross_entropy, margin_ranking_loss as margin_ranking_loss, mse_loss as mse_loss, multi_margin_loss as multi_margin_loss, multilabel_margin_loss as multilabel_margin_loss, multilabel_soft_margin_loss as multilabel_soft_margin_loss, nll_loss as nll_loss, poisson_nll_loss as poisson_nll_loss, smooth_l1_loss as smooth_l1_loss, soft_margin_loss as soft_margin_loss, triplet_margin_loss as triplet_margin_loss, triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from gradwire.nn.functional.resampling import affine_grid as affine_grid, grid_sample as grid_sample, interpolate as interpolate, upsample as upsample, upsample_bilinear as upsample_bilinear, upsample_nearest as upsample_nearest
from gradwire.nn.functional.tables import embedding as embedding, embedding_bag as embedding_bag, one_hot as one_hot
from typing import Literal, overload

def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None], *, out: Tensor | None = None) -> Tensor:
    """Means over as many windows as ``output_size``, along the last dimension. See :func:`adaptive_avg_pool2d`."""
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None], *, out: Tensor | None = None) -> Tensor:
    """Means over windows that divide ``(N, C, H, W)`` or ``(C, H, W)`` as evenly as they can into ``output_size``
    (``None`` keeps an extent); windows overlap where the extents do not divide. Floating point only."""
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None], *, out: Tensor | None = None) -> Tensor:
    """Means over windows that divide volumes into ``output_size``. See :func:`adaptive_avg_pool2d`."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[False] = False) -> Tensor:
    """Maxima over windows that divide the last 1 dimensions into ``output_size``; with ``return_indices`` also where each was."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int | None], *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]: ...
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool1d` and where each maximum was."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[False] = False) -> Tensor:
    """Maxima over windows that divide the last 2 dimensions into ``output_size``; with ``return_indices`` also where each was."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None], *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]: ...
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool2d` and where each maximum was."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[False] = False) -> Tensor:
    """Maxima over windows that divide the last 3 dimensions into ``output_size``; with ``return_indices`` also where each was."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: int | Sequence[int | None], *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]: ...
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool3d` and where each maximum was."""
def avg_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, *, out: Tensor | None = None) -> Tensor:
    """The mean of every window along the last dimension of ``(N, C, L)`` or ``(C, L)``. See :func:`avg_pool2d`."""
def avg_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The mean of every window of ``(N, C, H, W)`` or ``(C, H, W)``."""
def avg_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The mean of every window of ``(N, C, D, H, W)`` or ``(C, D, H, W)``. See :func:`avg_pool2d`."""
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05, *, out: Tensor | None = None) -> Tensor:
    """Shift and scale each channel (dimension 1) to mean 0 and variance 1; then multiply by ``weight``, add ``bias``."""
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self`` where positive, else ``alpha * (exp(self / alpha) - 1)``: smooth at 0 for every alpha but 0."""
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`celu`: writes the result into ``self``."""
def channel_shuffle(input: Tensor, groups: int, *, out: Tensor | None = None) -> Tensor:
    """``(N, C, ...)`` with its channels interleaved: the first of each of ``groups`` groups, then the second, ..."""
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | str | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, out: Tensor | None = None) -> Tensor:
    """Slide kernels along one dimension: ``(N, C, L)`` or ``(C, L)`` with a weight ``(O, C / groups, K)`` gives
    ``(N, O, L')``. See :func:`conv2d`."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | str | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, out: Tensor | None = None) -> Tensor:
    """Slide kernels over images: ``(N, C, H, W)`` or ``(C, H, W)`` with a weight ``(O, C / groups, KH, KW)`` gives
    ``(N, O, H', W')``, as a correlation (the kernel is not flipped)."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | str | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, out: Tensor | None = None) -> Tensor:
    """Slide kernels through volumes: ``(N, C, D, H, W)`` or ``(C, D, H, W)`` with a weight of five dimensions. See
    :func:`conv2d`."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, out: Tensor | None = None) -> Tensor:
    """The transpose of :func:`conv1d`: ``(N, C, L)`` with a weight ``(C, O / groups, K)`` gives ``(N, O, L')``. See
    :func:`conv_transpose2d`."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, out: Tensor | None = None) -> Tensor:
    """The transpose of :func:`conv2d` as a linear map: every input element lays a scaled kernel onto the output."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, out: Tensor | None = None) -> Tensor:
    """The transpose of :func:`conv3d`, with a weight ``(C, O / groups, KD, KH, KW)``. See :func:`conv_transpose2d`."""
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self`` where positive, else ``alpha * (exp(self) - 1)``."""
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`elu`: writes the result into ``self``."""
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None) -> Tensor:
    """Maxima over windows at random places of the last 2 dimensions, which become ``output_size``, or ``output_ratio`` of what they were; with ``return_indices`` also where each maximum was."""
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, *, return_indices: Literal[True], _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]: ...
def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: Extents, output_size: Extents | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool2d` and where each maximum was."""
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None) -> Tensor:
    """Maxima over windows at random places of the last 3 dimensions, which become ``output_size``, or ``output_ratio`` of what they were; with ``return_indices`` also where each maximum was."""
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, *, return_indices: Literal[True], _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]: ...
def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: Extents, output_size: Extents | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool3d` and where each maximum was."""
def gelu(input: Tensor, approximate: str = 'none', *, out: Tensor | None = None) -> Tensor:
    """``self`` times the normal distribution's probability of a smaller value."""
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05, *, out: Tensor | None = None) -> Tensor:
    """Shift and scale each group of channels of each sample to mean 0 and variance 1; then multiply by ``weight`` and
    add ``bias``, which have one element per channel. Floating point only."""
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 from ``-lambd`` to ``lambd``, elsewhere ``self``."""
def hardsigmoid(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``relu6(self + 3) / 6``. The gradient at -3 and 3 is 0."""
def hardsigmoid_(input: Tensor) -> Tensor:
    """In-place form of :func:`hardsigmoid`: writes the result into ``self``."""
def hardswish(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self * relu6(self + 3) / 6``."""
def hardswish_(input: Tensor) -> Tensor:
    """In-place form of :func:`hardswish`: writes the result into ``self``."""
def hardtanh(input: Tensor, min_val: complex = -1.0, max_val: complex = 1.0, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self`` cut to the range from ``min_val`` to ``max_val``. The gradient at either end is 0."""
def hardtanh_(input: Tensor, min_val: complex = -1.0, max_val: complex = 1.0) -> Tensor:
    """In-place form of :func:`hardtanh`: writes the result into ``self``."""
def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05, *, out: Tensor | None = None) -> Tensor:
    """:func:`batch_norm` of every sample by itself: mean and variance are over the dimensions after the second."""
def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05, *, out: Tensor | None = None) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over the last dimensions, which are ``normalized_shape``; then multiply
    by ``weight`` and add ``bias``, both of that shape."""
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self`` where positive, else ``negative_slope * self``."""
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place form of :func:`leaky_relu`: writes the result into ``self``."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """``self @ weight.T + bias``: ``(..., in)`` and a weight of ``(out, in)`` give ``(..., out)``."""
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(sigmoid(self))`` without underflow on the way."""
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Extents, stride: Extents | None = None, ceil_mode: bool = False) -> Tensor:
    """The root of order ``norm_type`` of the sum of powers of every window over the last 1 dimensions."""
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Extents, stride: Extents | None = None, ceil_mode: bool = False) -> Tensor:
    """The root of order ``norm_type`` of the sum of powers of every window over the last 2 dimensions."""
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Extents, stride: Extents | None = None, ceil_mode: bool = False) -> Tensor:
    """The root of order ``norm_type`` of the sum of powers of every window over the last 3 dimensions."""
@overload
def max_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maximum of every window over the last 1 dimensions; with ``return_indices`` also where each was."""
@overload
def max_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool1d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """:func:`max_pool1d`, and the index of each maximum along the last dimension."""
@overload
def max_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maximum of every window over the last 2 dimensions; with ``return_indices`` also where each was."""
@overload
def max_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool2d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """:func:`max_pool2d`, and the index of each maximum in its flattened image."""
@overload
def max_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maximum of every window over the last 3 dimensions; with ``return_indices`` also where each was."""
@overload
def max_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool3d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """:func:`max_pool3d`, and the index of each maximum in its flattened volume."""
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0, output_size: Sequence[int] | None = None) -> Tensor:
    """Lay the maxima of a pool over the last 1 dimensions back to their ``indices``, with zeros elsewhere. ``output_size`` picks one of the sizes that a stride leaves open."""
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0, output_size: Sequence[int] | None = None) -> Tensor:
    """Lay the maxima of a pool over the last 2 dimensions back to their ``indices``, with zeros elsewhere. ``output_size`` picks one of the sizes that a stride leaves open."""
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Extents, stride: Extents | None = None, padding: Extents = 0, output_size: Sequence[int] | None = None) -> Tensor:
    """Lay the maxima of a pool over the last 3 dimensions back to their ``indices``, with zeros elsewhere. ``output_size`` picks one of the sizes that a stride leaves open."""
def mish(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self * tanh(softplus(self))``."""
def mish_(input: Tensor) -> Tensor:
    """In-place form of :func:`mish`: writes the result into ``self``."""
def normalize(input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: complex = 1e-12, *, out: Tensor | None = None) -> Tensor:
    """Divide by the norm of order ``p`` over ``dim``, or by ``eps`` where that is larger."""
def pad(input: Tensor, pad: Sequence[int], mode: str = 'constant', value: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Surround with a border: ``pad`` holds (before, after) for the last dimension, then for the one before it, ..."""
def pdist(input: Tensor, p: float = 2.0, *, out: Tensor | None = None) -> Tensor:
    """The distances in the norm of order ``p`` between all pairs of the n rows: ``n * (n - 1) / 2`` of them, row by row
    of the upper triangle of :func:`cdist`'s matrix."""
def pixel_shuffle(input: Tensor, upscale_factor: int, *, out: Tensor | None = None) -> Tensor:
    """``(..., C * r * r, H, W)`` as ``(..., C, H * r, W * r)``: channels become the elements of r x r blocks."""
def pixel_unshuffle(input: Tensor, downscale_factor: int, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: ``(..., C, H * r, W * r)`` as ``(..., C * r * r, H, W)``."""
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``self`` where positive, else ``weight * self``."""
def relu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``max(self, 0)``; NaN stays. The gradient at 0 is 0."""
def relu6(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self`` cut to the range from 0 to 6. The gradient at either end is 0."""
def relu6_(input: Tensor) -> Tensor:
    """In-place form of :func:`relu6`: writes the result into ``self``."""
def relu_(input: Tensor) -> Tensor:
    """In-place form of :func:`relu`: writes the result into ``self``."""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``softmax(query @ key.T * scale + attn_mask) @ value``, matrix by matrix of a batch."""
def selu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """:func:`elu` with the constants that keep mean 0 and variance 1 from layer to layer."""
def selu_(input: Tensor) -> Tensor:
    """In-place form of :func:`selu`: writes the result into ``self``."""
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-self))``; integers become floats."""
def silu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self * sigmoid(self)``."""
def silu_(input: Tensor) -> Tensor:
    """In-place form of :func:`silu`: writes the result into ``self``."""
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + exp(beta * self)) / beta``; ``self`` itself where ``beta * self`` is above ``threshold``."""
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``self`` moved towards 0 by ``lambd``, which is not negative, and no further than 0."""
def softsign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``self / (1 + |self|)``; integers become floats."""
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic tangent; integers become floats."""
def tanhshrink(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``self - tanh(self)``; integers become floats."""
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """``self`` where above ``threshold``, else ``value``."""
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place form of :func:`threshold`: writes the result into ``self``."""

