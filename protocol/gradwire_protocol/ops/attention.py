"""Scaled dot product attention."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from ..autocast import LOWER
from ..costs import Cost, OpCall, last, numel
from ..dtypes import BOOLEAN, DType, bool_, float32, int64
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, meta, new
from ..shapes import broadcast, common_device, dense_stride_like
from ..table import Tensor, gradients, op
from .matrix import fits

_FLASH = "ScaledDotProductFlashAttentionForCpuBackward0"


def _checked(
    name: str, query: Meta, key: Meta, value: Meta, attn_mask: Meta | None, is_causal: bool, heads: int
) -> tuple[Shape, Shape]:
    """The shapes of result and attention weights; key and value count ``heads`` times in their third last dimension."""
    operands = (query, key, value)
    if any(o.dtype is not query.dtype for o in operands):
        listed = ", ".join(o.dtype.name for o in operands)
        raise DTypeError(f"{name}: query, key and value must have one dtype, they are {listed}")
    if query.dtype.is_complex:
        raise Unsupported(f"{name} is not defined on {query.dtype.name}")
    if not query.dtype.is_floating_point:
        raise DTypeError(f"{name} needs floating point tensors, got {query.dtype.name}")
    if any(o.ndim < 2 for o in operands):
        listed = ", ".join(str(list(o.shape)) for o in operands)
        raise ShapeError(f"{name}: query, key and value must have at least 2 dimensions; their shapes are {listed}")
    if not fits(query.shape[-1], key.shape[-1]) or not fits(key.shape[-2], value.shape[-2]):
        raise ShapeError(
            f"{name}: a query of shape {list(query.shape)}, a key of {list(key.shape)} and a value of "
            f"{list(value.shape)} do not fit: query and key share their last extent, key and value the one before"
        )

    def batch(operand: Meta, factor: int) -> Shape:
        lead = operand.shape[:-2]
        return (*lead[:-1], lead[-1] * factor) if lead and factor != 1 else lead

    lead = broadcast(batch(query, 1), batch(key, heads), batch(value, heads))
    weights = (*lead, query.shape[-2], key.shape[-2])
    if attn_mask is not None:
        if is_causal:
            raise ArgumentError(f"{name}: attn_mask and is_causal exclude each other")
        if attn_mask.dtype.category != BOOLEAN and attn_mask.dtype not in (query.dtype, float32):
            raise DTypeError(
                f"{name}: attn_mask is bool, float32 or {query.dtype.name} like the query, not {attn_mask.dtype.name}"
            )
        if broadcast(attn_mask.shape, weights) != weights:
            raise ShapeError(f"{name}: attn_mask {list(attn_mask.shape)} does not broadcast to {list(weights)}")
    return (*lead, query.shape[-2], value.shape[-1]), weights


def _pairs(c: OpCall) -> int:
    """Steps: each query meets each key, and its weights each value."""
    pairs = numel(c.query) // max(last(c.query), 1) * (c.key.shape[-2] if c.key.ndim > 1 else 1)
    return pairs * (last(c.query) + last(c.value))


@op(grad_fn=_FLASH, exposed=("nn.functional",), cost=Cost(_pairs), autocast=LOWER)
@gradients("opaque", saves="query key value attn_mask")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Inference:  # fmt: skip
    """``softmax(query @ key.T * scale + attn_mask) @ value``, matrix by matrix of a batch.

    ``query`` is ``(..., L, E)``, ``key`` ``(..., S, E)``, ``value`` ``(..., S, V)``; the result is ``(..., L, V)``.
    ``scale`` is ``1 / sqrt(E)`` unless given. A bool mask tells which keys a query may look at; a query that may look
    at none gives zeros. ``is_causal`` allows keys up to the query's own position. ``dropout_p`` zeroes attention
    weights at random. With ``enable_gqa`` each head of ``key`` and ``value`` serves several of ``query``.
    """
    name = "scaled_dot_product_attention"
    if not 0 <= dropout_p <= 1:
        raise ArgumentError(f"{name}: dropout_p must be from 0 to 1, got {dropout_p}")
    heads = heads_per_key(query, key, value) if enable_gqa else 1
    shape, weights = _checked(name, query, key, value, attn_mask, is_causal, heads)
    device = common_device(query, key, value, attn_mask)
    plain = query.ndim == key.ndim == value.ndim == 4 and shape == query.shape and not dropout_p
    plain = plain and key.shape[0] == query.shape[0] and key.shape[1] * heads == query.shape[1]
    if plain and (attn_mask is None or attn_mask.ndim in (2, 4)) and 0 not in weights:
        return new(shape, query.dtype, device, stride=dense_stride_like(query), grad_fn=_FLASH)
    return new(shape, query.dtype, device, grad_fn=_composed_node(query, shape))


def _composed_node(query: Meta, shape: Shape) -> str:
    """Where PyTorch has no fused attention, it ends in a matrix product, in float32 for half precision."""
    if query.dtype.is_low_precision:
        return "ToCopyBackward0"
    return "UnsafeViewBackward0" if len(shape) > 2 else "MmBackward0"


def heads_per_key(query: Meta, key: Meta, value: Meta) -> int:
    """How many heads of the query share one of the key.

    Raises:
        ShapeError: when they cannot be divided.
    """
    batched = min(query.ndim, key.ndim, value.ndim) >= 3
    heads = max(key.shape[-3], 1) if batched else 1
    if not batched or key.shape[-3] != value.shape[-3] or query.shape[-3] % heads:
        raise ShapeError(
            f"scaled_dot_product_attention: with enable_gqa the heads of a query of shape {list(query.shape)} must be "
            f"a multiple of those of a key of {list(key.shape)} and a value of {list(value.shape)}"
        )
    return query.shape[-3] // heads


@op(grad_fn=_FLASH, exposed=(), cost=Cost(_pairs), total=True)
@gradients(
    query=(
        "(s := (w := result1 * ((u := grad1 + (g := to(grad)) @ transpose(to(value))) - sum_dim(u * result1)))"
        " * c) @ to(key)"
    ),
    key="transpose(s) @ to(query)",
    value="transpose(result1) @ g",
    attn_mask="w",
    saves="query key value attn_mask result1",
    broadcasts=("key", "value", "attn_mask"),
)
def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float
) -> Inference:
    """:func:`scaled_dot_product_attention` without dropout, every head of the query with its own key and value."""
    return _attention("attention", query, key, value, attn_mask, is_causal)


def _attention(name: str, query: Meta, key: Meta, value: Meta, attn_mask: Meta | None, is_causal: bool) -> Inference:
    shape, weights = _checked(name, query, key, value, attn_mask, is_causal, 1)
    device = common_device(query, key, value, attn_mask)
    stride = dense_stride_like(query) if shape == query.shape else None
    out = meta(shape, query.dtype, device, stride)
    # The attention weights are kept for backward, as a second result that no caller sees.
    kept = meta(weights, float32 if query.dtype.is_low_precision else query.dtype, device)
    fused = len(shape) == 4 and shape == query.shape and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    node = _FLASH if fused else _composed_node(query, shape)
    return Inference((out, kept), None, None, node)


# What follows serves derivatives. Clients offer none of it by name.


@op(results=2, exposed=(), cost=Cost(_pairs), total=True, underived=("query", "key", "value", "attn_mask"))
def attention_training(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float
) -> Inference:
    """:func:`attention` and what :func:`attention_backward` takes: the attention weights."""
    return _attention("attention_training", query, key, value, attn_mask, is_causal)


@op(
    results=3, exposed=(), batched=True, cost=Cost(lambda c: 3 * _pairs(c)), total=True,
    underived=("grad", "query", "key", "value", "weights"),
)  # fmt: skip
def attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, weights: Tensor, scale: float
) -> Inference:
    """The gradients of :func:`attention` for query, key and value, of equal batch shapes."""
    wanted = _need_gradient("attention_backward", grad, query, key, value, None, False)
    _need_kept("attention_backward", "weights", weights, wanted, query.dtype)
    device = common_device(grad, query, key, value, weights)
    outs = tuple(meta(o.shape, o.dtype, device, dense_stride_like(o)) for o in (query, key, value))
    return Inference(outs, query.dtype)


def _need_gradient(
    name: str, grad: Meta, query: Meta, key: Meta, value: Meta, attn_mask: Meta | None, is_causal: bool
) -> Shape:
    """Check a gradient for an attention whose operands have one batch shape; the shape of its weights."""
    shape, weights = _checked(name, query, key, value, attn_mask, is_causal, 1)
    if any(o.shape[:-2] != query.shape[:-2] for o in (key, value)):
        listed = ", ".join(str(list(o.shape)) for o in (query, key, value))
        raise ShapeError(f"{name}: query, key and value have one batch shape; their shapes are {listed}")
    if grad.shape != shape or grad.dtype is not query.dtype:
        raise ShapeError(f"{name}: a gradient {grad!r} does not match a result of {list(shape)} in {query.dtype.name}")
    return weights


def _need_kept(name: str, what: str, kept: Meta, shape: Shape, dtype: DType) -> None:
    """Check what was kept of an attention: half precision's is float32."""
    wide = float32 if dtype.is_low_precision else dtype
    if kept.shape != shape or kept.dtype is not wide:
        raise ShapeError(f"{name}: {what} must be {wide.name}{list(shape)}, they are {kept!r}")


# Attention that recomputes its weights in backward

LEVELS: Final = 2
"""What is kept of a row instead of its weights: the largest score, and 1 over the sum of the exponentials of what the
others fall short of it. Their log-sum-exp in one number would round the sum away beside a large score."""

WORKED_ON: Final = 1 << 18
"""Attention weights that a CPU has in memory at a time, if single rows are not longer."""

WORKED_ON_BY_GPU: Final = 1 << 24
"""The same for a GPU, which needs more to be busy."""

LEAST_ROWS: Final = 32
"""Rows of a matrix whose weights are in memory together, at least."""


def portion(rows: int, cols: int, device: str) -> tuple[int, int]:
    """How many matrices of weights are worked on at a time, and how many of their rows."""
    most = WORKED_ON if device == "cpu" else WORKED_ON_BY_GPU
    matrices = max(1, most // max(rows * cols, 1))
    return (matrices, rows) if matrices > 1 else (1, min(rows, max(LEAST_ROWS, most // max(cols, 1))))


def _scratch(weights: Shape, dtype: DType, device: str) -> int:
    """Bytes of the portions of weights, their gradients and what is computed of them."""
    matrices, rows = portion(weights[-2], weights[-1], device)
    return 4 * min(matrices, prod(weights[:-2])) * rows * weights[-1] * max(dtype.itemsize, float32.itemsize)


def random_blocks(weights: Sequence[int]) -> int:
    """Blocks of the generator's words that decide which of these weights are dropped: each row begins with a new one,
    whose words decide two weights each."""
    return prod(weights[:-1]) * (-(-weights[-1] // PER_BLOCK))


PER_BLOCK: Final = 8
"""Weights that a block of the generator decides."""


@op(random=True, exposed=())
def attention_random_state(query: Tensor, key: Tensor, value: Tensor) -> Inference:
    """Seed and number of the first block of random words that dropout in :func:`flash_attention` takes: ``(2,)``.

    The generator moves on behind them, so that backward can draw them again.
    """
    _checked("attention_random_state", query, key, value, None, False, 1)
    return new((2,), int64, common_device(query, key, value))


@op(internal=True)
def attention_kept(random_state: Tensor, shape: tuple[int, ...], dropout_p: float) -> Inference:
    """Which attention weights of this shape dropout keeps."""
    return new(shape, bool_, random_state.device)


@op(
    grad_fn=_FLASH, differentiable=("query", "key", "value"), underived=("attn_mask",), exposed=(), cost=Cost(_pairs),
    total=True,
)  # fmt: skip
@gradients(
    query=(
        "(s := ((w := softmax((to(query) @ transpose(to(key))) * c))"
        " * ((u := to(grad) @ transpose(to(value))) - sum_dim(u * w))) * c) @ to(key)"
    ),
    key="transpose(s) @ to(query)",
    value="transpose(w) @ to(grad)",
    saves="query key value attn_mask random_state result1",
    broadcasts=("key", "value"),
)
def flash_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, random_state: Tensor | None, is_causal: bool,
    scale: float, dropout_p: float,
) -> Inference:  # fmt: skip
    """:func:`attention` with dropout, whose weights are recomputed in backward.

    Dao et al., "FlashAttention", 2022; Rabe and Staats, "Self-attention does not need O(n^2) memory", 2021. Memory
    grows with the rows, not with rows times columns. The mask has no derivative.
    """
    return _flash("flash_attention", query, key, value, attn_mask, random_state, is_causal, dropout_p)


def _flash(
    name: str, query: Meta, key: Meta, value: Meta, attn_mask: Meta | None, random_state: Meta | None, is_causal: bool,
    dropout_p: float,
) -> Inference:  # fmt: skip
    shape, weights = _checked(name, query, key, value, attn_mask, is_causal, 1)
    _need_dropout(name, random_state, dropout_p)
    device = common_device(query, key, value, attn_mask, random_state)
    out = meta(shape, query.dtype, device, dense_stride_like(query) if shape == query.shape else None)
    wide = float32 if query.dtype.is_low_precision else query.dtype
    levels = meta((*weights[:-1], LEVELS), wide, device)
    alike = query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    fused = len(shape) == 4 and shape == query.shape and alike and random_state is None
    node = _FLASH if fused else _composed_node(query, shape)
    return Inference((out, levels), None, None, node, _scratch(weights, query.dtype, device))


def _need_dropout(name: str, random_state: Meta | None, dropout_p: float) -> None:
    if not 0 <= dropout_p <= 1:
        raise ArgumentError(f"{name}: dropout_p must be from 0 to 1, got {dropout_p}")
    if random_state is not None and (random_state.shape != (2,) or random_state.dtype is not int64):
        raise ShapeError(f"{name}: random_state is what attention_random_state gives, int64[2], not {random_state!r}")


@op(results=2, exposed=(), cost=Cost(_pairs), total=True, underived=("query", "key", "value", "attn_mask"))
def flash_attention_training(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, random_state: Tensor | None, is_causal: bool,
    scale: float, dropout_p: float,
) -> Inference:  # fmt: skip
    """:func:`flash_attention` and what :func:`flash_attention_backward` takes: two levels of each row."""
    name = "flash_attention_training"
    return _flash(name, query, key, value, attn_mask, random_state, is_causal, dropout_p)


@op(
    results=3, exposed=(), cost=Cost(lambda c: 3 * _pairs(c)), total=True,
    underived=("grad", "query", "key", "value", "attn_mask", "levels"),
)  # fmt: skip
def flash_attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, random_state: Tensor | None,
    levels: Tensor, is_causal: bool, scale: float, dropout_p: float,
) -> Inference:  # fmt: skip
    """The gradients of :func:`flash_attention` for query, key and value, of equal batch shapes."""
    name = "flash_attention_backward"
    weights = _need_gradient(name, grad, query, key, value, attn_mask, is_causal)
    _need_kept(name, "levels", levels, (*weights[:-1], LEVELS), query.dtype)
    _need_dropout(name, random_state, dropout_p)
    device = common_device(grad, query, key, value, attn_mask, random_state, levels)
    outs = tuple(meta(o.shape, o.dtype, device, dense_stride_like(o)) for o in (query, key, value))
    return Inference(outs, None, scratch=_scratch(weights, query.dtype, device))
