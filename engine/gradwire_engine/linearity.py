"""Which ops are linear, and in what sense: forward mode needs no derivative for these.

An op that is missing here is not wrong, only slower: its tangents come from its derivative.
"""

from __future__ import annotations

from typing import Any, Final

from .functional import F


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


LINEAR: Final = _names(
    """
    clone contiguous to reshape flatten unflatten repeat tile flip roll rot90 tril triu diag diag_embed sum_to_size
    sum mean trace cumsum neg positive add sub rsub real imag conj conj_physical cat stack repeat_interleave
    avg_pool1d avg_pool2d avg_pool3d avg_pool_backward adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    adaptive_avg_pool_backward spread select_backward slice_backward diagonal_backward unfold_backward restride
    index_select take index gather embedding view_as_real view_as_complex deg2rad rad2deg interpolate
    interpolate_backward affine_grid_generator affine_grid_generator_backward im2col col2im pixel_shuffle
    pixel_unshuffle channel_shuffle max_unpool fft_c2c fft_r2c fft_c2r overlap_add
    """
)
"""Linear in all their differentiable operands together."""

MULTILINEAR: Final = _names(
    """
    mul matmul mm bmm mv dot vdot inner outer kron tensordot einsum contract convolution convolution_input
    convolution_weight
    """
)
"""Linear in each of their differentiable operands, the others held fixed."""

ELEMENTWISE: Final = _names(
    """
    div remainder fmod pow square abs sign sgn fmin clamp clamp_min clamp_max where masked_fill lerp addcmul addcdiv
    hypot xlogy logaddexp logaddexp2 copysign reciprocal exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan
    asin acos atan sinh cosh tanh asinh acosh atanh sigmoid logit erf erfc erfinv sinc floor ceil trunc round frac
    nan_to_num relu relu6 hardtanh leaky_relu elu selu celu gelu silu mish softplus logsigmoid softsign tanhshrink
    hardshrink softshrink hardsigmoid hardswish threshold dropout threshold_backward sigmoid_backward tanh_backward
    gelu_backward silu_backward lgamma digamma polygamma mvlgamma i0 ldexp special_i0e special_i1 special_i1e
    special_entr special_erfcx special_ndtr special_log_ndtr special_ndtri special_xlog1py
    """
)
"""Element i of the result depends on element i of the (broadcast) operands only."""


def _picking(first: Any, self_t: Any, other_t: Any) -> Any:
    """``self_t`` to the extent ``first``, else ``other_t``."""
    if self_t is None:
        return other_t - first * other_t
    if other_t is None:
        return first * self_t
    return other_t + first * (self_t - other_t)


def _half_at_ties(x: Any, y: Any, above: Any) -> Any:
    return F.where(x == y, 0.5, F.to(above, dtype=x.dtype if x.ndim or not y.ndim else y.dtype))


def _polar(abs: Any, angle: Any, abs_t: Any, angle_t: Any) -> Any:
    cos, sin = F.cos(angle), F.sin(angle)
    real, imag = 0, 0
    if abs_t is not None:
        real, imag = abs_t * cos, abs_t * sin
    if angle_t is not None:
        real, imag = real - angle_t * abs * sin, imag + angle_t * abs * cos
    return F.complex(real, imag)


OWN_RULES: Final = {
    "maximum": lambda x, y, x_t, y_t: _picking(_half_at_ties(x, y, x > y), x_t, y_t),
    "minimum": lambda x, y, x_t, y_t: _picking(_half_at_ties(x, y, x < y), x_t, y_t),
    "fmax": lambda x, y, x_t, y_t: _picking((x > y) | F.isnan(y), x_t, y_t),
    "polar": _polar,
}
"""Ops at whose kinks PyTorch's forward mode says something else than its reverse mode: functions of the operands and
their tangents, of which one may be None."""

FLAT_AT_ZERO: Final = frozenset(("std", "std_mean", "sgn", "angle"))
"""Ops whose derivative is 0, rather than undefined, where the first result is 0 (the operand, for an angle)."""
