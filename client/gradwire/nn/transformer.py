"""The transformer: encoder, decoder, their layers, and the whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ShapeError

from .._core.context.argument_types import Device
from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.surface.creation import full
from .._core.tensor.tensor import Tensor
from . import functional as F
from .container import ModuleList
from .dropout import Dropout
from .functional.attention import as_bias
from .init import xavier_uniform_
from .linear import Linear
from .multihead_attention import MultiheadAttention
from .normalization import LayerNorm

Activation = str | Callable[[Any], Any]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Minus infinity above the diagonal, 0 elsewhere: no position looks at a later one."""
    return call("triu", full((sz, sz), -math.inf, device=device, dtype=dtype), 1)


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[[Any], Any]:
    if activation not in ("relu", "gelu"):
        raise ArgumentError(f"an activation is called 'relu' or 'gelu', or is a function; {activation!r} is neither")
    found: Callable[[Any], Any] = getattr(F, activation)
    return found


class Transformer(Module):
    """Encoder and decoder. Vaswani et al., "Attention Is All You Need", 2017.

    Args:
        d_model: features of each position, divided among ``nhead`` heads.
        dim_feedforward: features between the two linear maps of a layer.
        activation: ``"relu"``, ``"gelu"`` or a function, between them.
        custom_encoder: a module to use instead of a :class:`TransformerEncoder`; ``custom_decoder`` alike.
        batch_first: inputs are ``(N, L, E)`` rather than ``(L, N, E)``.
        norm_first: normalise before attention and linear maps, not after.
        bias: whether linear maps and norms add one.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        made: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        if custom_encoder is None:
            norm = LayerNorm(d_model, eps=layer_norm_eps, **made)
            self.encoder: TransformerEncoder = TransformerEncoder(
                TransformerEncoderLayer(*layer, **made), num_encoder_layers, norm
            )
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            norm = LayerNorm(d_model, eps=layer_norm_eps, **made)
            self.decoder: TransformerDecoder = TransformerDecoder(
                TransformerDecoderLayer(*layer, **made), num_decoder_layers, norm
            )
        else:
            self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model: int = d_model
        self.nhead: int = nhead
        self.batch_first: bool = batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Encode ``src`` ``(S, N, E)`` and decode ``tgt`` ``(T, N, E)`` with it, to ``(T, N, E)``."""
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError(f"src has a batch of {src.shape[batch]}, tgt one of {tgt.shape[batch]}")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(f"src and tgt have {self.d_model} features, not {src.shape[-1]} and {tgt.shape[-1]}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device = None, dtype: DType | None = None) -> Tensor:
        """The mask ``(sz, sz)`` with which no position looks at a later one: minus infinity above the diagonal."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                xavier_uniform_(parameter)


class TransformerEncoder(Module):
    """A stack of encoder layers, each a copy of the one given.

    ``enable_nested_tensor`` and ``mask_check`` choose how PyTorch computes, and change nothing here.
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers: ModuleList = _get_clones(encoder_layer, num_layers)
        self.num_layers: int = num_layers
        self.norm: Module | None = norm
        self.enable_nested_tensor: bool = enable_nested_tensor
        self.use_nested_tensor: bool = False
        self.mask_check: bool = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Pass ``src`` through the layers. ``is_causal`` is a hint that ``mask`` is the causal one."""
        padding = as_bias(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask)
        mask = as_bias(mask, "mask", src.dtype)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=bool(is_causal), src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of decoder layers, each a copy of the one given."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers: ModuleList = _get_clones(decoder_layer, num_layers)
        self.num_layers: int = num_layers
        self.norm: Module | None = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Pass ``tgt`` through the layers, which look at ``memory``. The hints say that a mask is the causal one."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class _Layer(Module):
    """What both kinds of layers have: attention to themselves, and two linear maps with an activation between them."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: Activation,
        layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, attentions: tuple[str, ...],
        device: Device, dtype: DType | None,
    ) -> None:  # fmt: skip
        super().__init__()
        made: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **made))
        self.linear1: Linear = Linear(d_model, dim_feedforward, **made)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, **made)
        self.norm_first: bool = norm_first
        count = len(attentions) + 1
        for i in range(1, count + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, **made))
        for i in range(1, count + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        found = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout1(found[0])

    def _fed_forward(self, x: Any) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear maps, each added to what came in and normalised."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            ("self_attn",), device, dtype,
        )  # fmt: skip

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """``(L, N, E)`` to the same shape. ``is_causal`` is a hint that ``src_mask`` is the causal one."""
        padding = as_bias(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask)
        mask = as_bias(src_mask, "src_mask", src.dtype)
        if self.norm_first:
            src = src + self._sa_block(self.norm1(src), mask, padding, is_causal=is_causal)
            return src + self._ff_block(self.norm2(src))
        src = self.norm1(src + self._sa_block(src, mask, padding, is_causal=is_causal))
        return self.norm2(src + self._ff_block(src))

    def _ff_block(self, x: Any) -> Tensor:
        return self.dropout2(self._fed_forward(x))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, then to the encoder's result, then two linear maps; each added to what came in
    and normalised."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            ("self_attn", "multihead_attn"), device, dtype,
        )  # fmt: skip

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """``tgt`` ``(T, N, E)`` and ``memory`` ``(S, N, E)`` to ``(T, N, E)``."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            tgt = tgt + self._sa_block(self.norm1(tgt), *own)
            tgt = tgt + self._mha_block(self.norm2(tgt), memory, *other)
            return tgt + self._ff_block(self.norm3(tgt))
        tgt = self.norm1(tgt + self._sa_block(tgt, *own))
        tgt = self.norm2(tgt + self._mha_block(tgt, memory, *other))
        return self.norm3(tgt + self._ff_block(tgt))

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        found = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(found[0])

    def _ff_block(self, x: Any) -> Tensor:
        return self.dropout3(self._fed_forward(x))
