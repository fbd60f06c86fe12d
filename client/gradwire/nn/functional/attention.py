"""Attention with several heads, from projections to projection."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradwire_protocol.dtypes import DType, bool_
from gradwire_protocol.errors import ArgumentError, ShapeError

from ..._core.dispatch.dispatch import call
from ..._core.tensor.tensor import Tensor

__all__ = ["multi_head_attention_forward"]


def as_bias(mask: Tensor | None, name: str, dtype: DType, beside: Tensor | None = None) -> Any:
    """A mask as what is added to scores: a bool one as minus infinity where it is true, one of floats as it is.

    Args:
        beside: the other mask of the call, whose dtype should be the same.

    Raises:
        AssertionError: for another dtype, as in PyTorch.
    """
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.is_floating_point():
        raise AssertionError(f"{name} is bool or floating point, not {mask.dtype!r}")
    if beside is not None and beside.dtype is not mask.dtype:
        warnings.warn(f"{name} is {mask.dtype!r}, the other mask {beside.dtype!r}", UserWarning, stacklevel=4)
    if mask.dtype is not bool_:
        return mask
    return call("masked_fill", call("zeros_like", mask, dtype=dtype), mask, -math.inf)


def _need(condition: bool, text: str) -> None:
    """PyTorch asserts here."""
    if not condition:
        raise AssertionError(f"multi_head_attention_forward: {text}")


def _check_dims(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, heads: int
) -> bool:
    """Whether there is a batch."""
    _need(query.ndim in (2, 3), f"the query has 2 dimensions, or 3 with a batch, not {query.ndim}")
    batched = query.ndim == 3
    _need(
        key.ndim == value.ndim == query.ndim,
        f"key and value have {query.ndim} dimensions as the query, not {key.ndim} and {value.ndim}",
    )
    if key_padding_mask is not None:
        wanted = query.ndim - 1
        _need(key_padding_mask.ndim == wanted, f"key_padding_mask has {wanted} dimensions, not {key_padding_mask.ndim}")
    if attn_mask is not None:
        _need(attn_mask.ndim in (2, 3), f"attn_mask has 2 or 3 dimensions, not {attn_mask.ndim}")
        if not batched and attn_mask.ndim == 3:
            wanted_shape = (heads, query.shape[0], key.shape[0])
            given = tuple(attn_mask.shape)
            _need(given == wanted_shape, f"attn_mask has the shape {list(wanted_shape)}, not {list(given)}")
    return batched


def _split(x: Tensor, batch: int, heads: int, width: int) -> Any:
    """``(L, N, E)`` to ``(N, heads, L, width)``."""
    return call("permute", call("view", x, (x.shape[0], batch, heads, width)), (1, 2, 0, 3))


def _packed(x: Tensor, weight: Tensor, bias: Tensor | None, batch: int, heads: int, width: int) -> tuple[Any, ...]:
    """Several projections of one tensor, whose weights lie one below the other: ``(N, heads, L, width)`` each."""
    count = weight.shape[0] // (heads * width)
    found = call("view", call("linear", x, weight, bias), (x.shape[0], batch, count, heads, width))
    return tuple(call("unbind", call("permute", found, (2, 1, 3, 0, 4)), 0))


def _part(tensor: Tensor | None, start: int, stop: int) -> Any:
    return None if tensor is None else call("slice", tensor, 0, start, stop, 1)


def _static(name: str, given: Tensor, batch: int, heads: int, width: int) -> Any:
    """Keys or values that are given instead of computed, ``(N * heads, S, width)``."""
    _need(given.shape[0] == batch * heads, f"{name} has {given.shape[0]} matrices, {batch * heads} are needed")
    _need(given.shape[2] == width, f"{name} has {given.shape[2]} features, {width} are needed")
    return call("reshape", given, (batch, heads, given.shape[1], width))


def _one_more(x: Any, row: Any) -> Any:
    """With one key, or value, more at the end."""
    batch, heads, _, width = x.shape
    return call("cat", [x, call("expand", row, (batch, heads, 1, width))], 2)


def _with_column(mask: Any) -> Any:
    """A mask for one key more, which may always be looked at."""
    return None if mask is None else call("cat", [mask, mask.new_zeros((*mask.shape[:-1], 1))], mask.ndim - 1)


def _mask_shape(attn_mask: Tensor, batch: int, heads: int, rows: int, cols: int) -> Any:
    """``(L, S)`` or ``(N * heads, L, S)``, brought to the dimensions of scores, ``(N, heads, L, S)``."""
    wanted = (rows, cols) if attn_mask.ndim == 2 else (batch * heads, rows, cols)
    if tuple(attn_mask.shape) != wanted:
        raise ShapeError(f"attn_mask has the shape {list(attn_mask.shape)}, it must be {list(wanted)}")
    return attn_mask if attn_mask.ndim == 2 else call("reshape", attn_mask, (batch, heads, rows, cols))


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Project query, key and value, attend in each head, project what comes out; with the attention weights.

    Args:
        query: ``(L, N, E)``, or ``(L, E)`` without a batch; ``key`` and ``value`` are ``(S, N, ...)`` or ``(S, ...)``.
        in_proj_weight: ``(3 * E, E)``, the weights of all three projections; with ``use_separate_proj_weight`` they
            are ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight``.
        bias_k: one key more, ``(1, 1, E)``, learnt; ``bias_v`` its value.
        add_zero_attn: add a key and a value of zeros.
        dropout_p: the probability that an attention weight is dropped in training.
        key_padding_mask: ``(N, S)`` or ``(S,)``: true where a key is not to be looked at, or floats added to scores.
        attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``, alike.
        static_k: keys to use as they are, ``(N * num_heads, S, E / num_heads)``; ``static_v`` values.
        need_weights: return the weights, too: ``(N, L, S)``, or without ``average_attn_weights``
            ``(N, num_heads, L, S)``.
        is_causal: a hint that ``attn_mask`` is the causal one.

    Returns:
        ``(L, N, E)`` or ``(L, E)``, and the weights or ``None``.
    """
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise ArgumentError("is_causal is a hint about attn_mask, which must be given, too")
    hinted = is_causal and key_padding_mask is None and not need_weights
    padding = as_bias(key_padding_mask, "key_padding_mask", query.dtype, attn_mask)
    bias = None if hinted else as_bias(attn_mask, "attn_mask", query.dtype)
    if not batched:
        query, key, value = _with_batch(query, key, value)
        padding = None if padding is None else call("unsqueeze", padding, 0)
    length, batch, embed = query.shape
    width = embed // num_heads
    _need(embed == embed_dim_to_check, f"embeddings have {embed_dim_to_check} features, the query {embed}")
    _need(width * num_heads == embed, f"{embed} features cannot be divided among {num_heads} heads")
    sizes = (batch, num_heads, width)
    if use_separate_proj_weight:
        _need(key.shape[:2] == value.shape[:2], f"key {list(key.shape)} and value {list(value.shape)} do not fit")
        biases = [_part(in_proj_bias, i * embed, (i + 1) * embed) for i in range(3)]
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        given = zip((query, key, value), weights, biases, strict=True)
        q, k, v = [_split(call("linear", x, w, b), *sizes) for x, w, b in given]
    else:
        _need(key.shape == value.shape, f"key {list(key.shape)} and value {list(value.shape)} do not fit")
        assert in_proj_weight is not None
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, sizes)
    if bias_k is not None and bias_v is not None:
        _need(static_k is None and static_v is None, "a bias cannot be added to static keys or values")
        k = _one_more(k, call("view", bias_k, (1, num_heads, 1, width)))
        v = _one_more(v, call("view", bias_v, (1, num_heads, 1, width)))
        bias, padding = _with_column(bias), _with_column(padding)
    else:
        _need(bias_k is None and bias_v is None, "bias_k and bias_v go together")
    k = k if static_k is None else _static("static_k", static_k, *sizes)
    v = v if static_v is None else _static("static_v", static_v, *sizes)
    if add_zero_attn:
        zero = k.new_zeros((1, 1, 1, width))
        k, v = _one_more(k, zero), _one_more(v, zero)
        bias, padding = _with_column(bias), _with_column(padding)
    if bias is not None:
        bias = _mask_shape(bias, batch, num_heads, length, k.shape[2])
    if padding is not None:
        wanted = (batch, k.shape[2])
        _need(tuple(padding.shape) == wanted, f"key_padding_mask has the shape {list(wanted)}")
        padding = call("view", padding, (batch, 1, 1, k.shape[2]))
        bias = padding if bias is None else call("add", bias, padding)
    dropout = dropout_p if training else 0.0
    attended, attention = _attend(q, k, v, bias, hinted, dropout, need_weights)
    joined = call("reshape", call("permute", attended, (2, 0, 1, 3)), (length, batch, embed))
    out = call("linear", joined, out_proj_weight, out_proj_bias)
    if attention is not None and average_attn_weights:
        attention = call("mean", attention, (1,))
    if not batched:
        out = call("squeeze", out, 1)
        attention = None if attention is None else call("squeeze", attention, 0)
    return out, attention


def _with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, Any, Any]:
    """Each with a batch of one; what was one tensor stays one."""
    q = call("unsqueeze", query, 1)
    k = q if key is query else call("unsqueeze", key, 1)
    v = k if value is key else call("unsqueeze", value, 1)
    return q, k, v


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None, sizes: tuple[int, int, int]
) -> tuple[Any, ...]:
    """Query, key and value times their part of the weights, in as few products as there are tensors."""
    embed = query.shape[-1]
    if key is value and query is key:
        return _packed(query, weight, bias, *sizes)
    (q,) = _packed(query, _part(weight, 0, embed), _part(bias, 0, embed), *sizes)
    rest = (_part(weight, embed, 3 * embed), _part(bias, embed, 3 * embed))
    if key is value:
        return (q, *_packed(key, *rest, *sizes))
    parts = [(_part(t, 0, embed), _part(t, embed, 2 * embed)) for t in rest]
    (k,) = _packed(key, parts[0][0], parts[1][0], *sizes)
    (v,) = _packed(value, parts[0][1], parts[1][1], *sizes)
    return q, k, v


def _attend(q: Any, k: Any, v: Any, bias: Any, causal: bool, dropout: float, need_weights: bool) -> tuple[Any, Any]:
    """The mixed values, and the weights where they are needed."""
    if not need_weights:
        return call("scaled_dot_product_attention", q, k, v, bias, dropout, causal), None
    scores = call("matmul", call("mul", q, math.sqrt(1.0 / q.shape[-1])), call("transpose", k, -2, -1))
    if bias is not None:
        scores = call("add", scores, bias)
    weights = call("softmax", scores, -1)
    if dropout > 0:
        weights = call("dropout", weights, dropout, True)[0]
    return call("matmul", weights, v), weights
