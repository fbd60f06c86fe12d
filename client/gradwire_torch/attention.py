"""Attention and layers of encoders that PyTorch's modules compute in one operation when nothing is differentiated."""

from __future__ import annotations

from typing import Any

import torch

import gradwire as gw

from .dispatch import computes, kernel

_ROWS_AND_COLUMNS, _PADDING = 0, 1
"""What a mask is of, beside one for each head of each sequence."""


def _allowed(mask: Any, mask_type: int | None) -> Any:
    """Which keys a query may look at, for each head. A mask tells which it may not."""
    allowed = ~mask if mask.dtype is gw.bool else mask == 0
    if mask_type == _ROWS_AND_COLUMNS:
        return allowed.reshape((1, 1, *allowed.shape))
    if mask_type == _PADDING:
        return allowed.reshape((allowed.shape[0], 1, 1, allowed.shape[1]))
    return allowed


def _projected(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> Any:
    """Queries, keys and values by the three parts of one weight."""
    linear = gw.nn.functional.linear
    if query is key and key is value:
        return gw.chunk(linear(query, weight, bias), 3, -1)
    weights = gw.chunk(weight, 3)
    biases = (None,) * 3 if bias is None else gw.chunk(bias, 3)
    return [linear(one, w, b) for one, w, b in zip((query, key, value), weights, biases, strict=True)]


@computes("_native_multi_head_attention")
def multi_head_attention(
    query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any,
    proj_weight: Any, proj_bias: Any, mask: Any = None, need_weights: bool = True, average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Attention over batches of sequences, ``(N, L, embed_dim)``, and its weights if they are asked for."""
    size = embed_dim // num_head
    q, k, v = (
        one.reshape((one.shape[0], one.shape[1], num_head, size)).transpose(1, 2)
        for one in _projected(query, key, value, qkv_weight, qkv_bias)
    )
    allowed = None if mask is None else _allowed(mask, mask_type)
    weights = None
    if need_weights:
        scores = gw.matmul(q * size**-0.5, k.mT)
        weights = gw.softmax(scores if allowed is None else scores.masked_fill(~allowed, float("-inf")), -1)
        found = gw.matmul(weights, v)
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        found = gw.nn.functional.scaled_dot_product_attention(q, k, v, allowed)
    found = found.transpose(1, 2).reshape((query.shape[0], query.shape[1], embed_dim))
    return gw.nn.functional.linear(found, proj_weight, proj_bias), weights


@computes("_transformer_encoder_layer_fwd")
def encoder_layer(
    src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any,
    norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any, mask: Any = None,
    mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Attention to itself and two linear layers, each added to its input and normalized after or before."""
    functional = gw.nn.functional
    norms = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)

    def attend(x: Any) -> Any:
        weights = qkv_weight, qkv_bias, proj_weight, proj_bias
        return multi_head_attention(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]

    def feed_forward(x: Any) -> Any:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    x = src
    for part, (weight, bias) in zip((attend, feed_forward), norms, strict=True):
        if norm_first:
            x = x + part(functional.layer_norm(x, (embed_dim,), weight, bias, eps))
        else:
            x = functional.layer_norm(x + part(x), (embed_dim,), weight, bias, eps)
    return x


@kernel("_nested_tensor_from_mask_left_aligned")
def fits_nested(t: torch.Tensor, mask: torch.Tensor) -> bool:
    """Never: tensors of gradwire are not nested, and PyTorch passes the mask on to the layers then."""
    return False
