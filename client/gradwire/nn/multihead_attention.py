"""Multi-head attention as a module."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentValueError

from .._core.context.argument_types import Device
from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.surface.creation import empty
from .._core.tensor.tensor import Tensor
from . import functional as F
from . import init
from .linear import NonDynamicallyQuantizableLinear


class MultiheadAttention(Module):
    """Attention in several heads, each on a part of the projected features. Vaswani et al., "Attention Is All You
    Need", 2017.

    Args:
        embed_dim: features of queries and of results, divided among ``num_heads``.
        dropout: the probability that an attention weight is dropped in training.
        bias: whether projections add one.
        add_bias_kv: learn one key and value more, for all sequences.
        add_zero_attn: add a key and a value of zeros.
        kdim: features of keys, ``vdim`` of values, where they are not ``embed_dim``.
        batch_first: the batch is the first dimension of inputs and results, not the second.

    Raises:
        AssertionError: when ``embed_dim`` cannot be divided.
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ArgumentValueError(f"embed_dim and num_heads must be positive, they are {embed_dim} and {num_heads}")
        super().__init__()
        self.embed_dim: int = embed_dim
        self.kdim: int = embed_dim if kdim is None else kdim
        self.vdim: int = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads: int = num_heads
        self.dropout: float = dropout
        self.batch_first: bool = batch_first
        self.head_dim: int = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(f"{embed_dim} features cannot be divided among {num_heads} heads")
        made: dict[str, Any] = {"device": device, "dtype": dtype}

        def weight(*shape: int) -> Any:
            return Parameter(empty(*shape, **made))

        packed = self._qkv_same_embed_dim
        self.register_parameter("in_proj_weight", weight(3 * embed_dim, embed_dim) if packed else None)
        for name, features in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(f"{name}_proj_weight", None if packed else weight(embed_dim, features))
        self.register_parameter("in_proj_bias", weight(3 * embed_dim) if bias else None)
        self.out_proj: NonDynamicallyQuantizableLinear = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, **made
        )
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, weight(1, 1, embed_dim) if add_bias_kv else None)
        self.add_zero_attn: bool = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        names = ("in_proj_weight",) if self._qkv_same_embed_dim else ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        for name in names:
            init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for parameter in (self.bias_k, self.bias_v):
            if parameter is not None:
                init.xavier_normal_(parameter)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Two masks as one, and its kind: 1 for padding alone, ``(batch, sequence)``; 2 with a mask of positions,
        ``(batch, heads, sequence, sequence)``; None without a mask."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.ndim == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attend from ``query`` to ``key`` and ``value``.

        Args:
            query: ``(L, N, E)``, ``(N, L, E)`` with ``batch_first``, or ``(L, E)``; key and value alike with S rows.
            key_padding_mask: ``(N, S)``: true where a key is not to be looked at, or floats added to scores.
            need_weights: whether to return the weights; without, it is faster.
            attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``, alike.
            average_attn_weights: return the mean over heads rather than ``(N, num_heads, L, S)``.
            is_causal: a hint that ``attn_mask`` is the causal one.

        Returns:
            The result, shaped as the query, and the weights ``(N, L, S)`` or ``None``.
        """
        turned = self.batch_first and query.ndim == 3
        if turned:
            query, key, value = _turned(query, key, value)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (call("transpose", out, 0, 1) if turned else out), weights


def _turned(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """The first two dimensions exchanged; what was one tensor stays one."""
    q = call("transpose", query, 0, 1)
    k = q if key is query else call("transpose", key, 0, 1)
    v = k if value is key else call("transpose", value, 0, 1)
    return q, k, v
