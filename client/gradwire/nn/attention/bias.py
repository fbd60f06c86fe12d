"""``torch.nn.attention.bias``: causal masks that are told by their kind rather than by their elements."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import ones
from ..._core.tensor.tensor import Tensor
from .. import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask begins, if there are more keys than queries or fewer."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias:
    """A causal mask for ``scaled_dot_product_attention(attn_mask=)``.

    Args:
        variant: whether the diagonal begins at the upper left, or ends at the lower right.
        seq_len_q, seq_len_kv: how many queries and keys there are.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant is a CausalVariant, not {type(variant).__name__}")
        self.variant = variant
        self.seq_len_q: int = seq_len_q
        self.seq_len_kv: int = seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                f"{seq_len_q} queries and {seq_len_kv} keys, aligned at the lower right, leave queries without keys: "
                "their results are NaN", stacklevel=2,
            )  # fmt: skip

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a tensor, true where a query looks at a key."""
        shift = 0 if self.variant is CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q
        full = ones(self.seq_len_q, self.seq_len_kv, dtype=_bool(), device=device)
        made: Tensor = call("tril", full, shift)
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Attention with this mask; other ops get it as a tensor."""
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return _attend(*args, **kwargs)
        args = [a._materialize() if isinstance(a, CausalBias) else a for a in args]
        return func(*args, **{k: v._materialize() if isinstance(v, CausalBias) else v for k, v in kwargs.items()})

    def __repr__(self) -> str:
        return repr(self._materialize())


def _bool() -> Any:
    from gradwire_protocol.dtypes import bool_

    return bool_


def _attend(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    if is_causal:
        raise ValueError("a CausalBias is given without is_causal=True")
    plain = attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant is CausalVariant.UPPER_LEFT
    mask = None if plain else attn_mask._materialize(query.device)
    found: Tensor = F.scaled_dot_product_attention(
        query, key, value, mask, dropout_p, is_causal=plain, scale=scale, enable_gqa=enable_gqa
    )
    return found


def _two(size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"a causal mask has two extents, queries and keys, not {len(size)}")
    return size[0], size[1]


def causal_upper_left(*size: int) -> CausalBias:
    """Query i looks at keys 0 to i."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_two(size))


def causal_lower_right(*size: int) -> CausalBias:
    """The last query looks at all keys, the one before at all but the last, and so on."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two(size))
