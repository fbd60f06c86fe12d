"""``torch.nn.attention.flex_attention``: attention whose scores and masks are functions of the program's.

The functions are mapped over batch, head, query and key, and the scores are computed whole: a block mask says which
scores count, and saves no work. Gradients pass through all of it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from gradwire_protocol.dtypes import bool_, float32, float64
from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported

from ..._core.composed.vmap import vmap
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import arange, zeros
from ..._core.tensor.tensor import Tensor
from .block_mask import _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE
from .block_mask import _LARGE_SPARSE_BLOCK_SIZE as _LARGE_SPARSE_BLOCK_SIZE
from .block_mask import BlockMask, _blocks_of, _ordered, _sliced_mask_mod_error, noop_mask

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_SCORE_ARGUMENTS: Final = 5


class AuxRequest(NamedTuple):
    """What :func:`flex_attention` returns beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The logarithms of the sums of exponentials of scores, and the largest scores, for each query."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


FlexKernelOptions = dict[str, Any]
"""Options of PyTorch's kernels. They have no effect here."""


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    return score


def _is_score_mod(function: Callable[..., Any]) -> bool:
    """Whether a function takes a score first, told by the number of its arguments without default."""
    given = inspect.signature(function).parameters.values()
    count = sum(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in given
    )  # fmt: skip
    if count not in (_SCORE_ARGUMENTS, _SCORE_ARGUMENTS - 1):
        raise AssertionError(f"a score_mod has 5 arguments, a mask_mod 4, not {count}")
    return count == _SCORE_ARGUMENTS


def _over_places(function: Callable[..., Any], scored: bool) -> Callable[..., Any]:
    """A function of one batch, head, query and key, mapped over all of them."""
    before = (0,) if scored else ()
    for at in (3, 2, 1, 0):
        function = vmap(function, in_dims=before + tuple(0 if i == at else None for i in range(4)))
    return function


def _places(batches: int, heads: int, queries: int, keys: int, device: Any) -> Iterator[Tensor]:
    return (arange(0, count, device=device) for count in (batches, heads, queries, keys))


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask that is true where one of these is.

    Raises:
        ArgumentError: for something that is no function.
    """
    _check_callable(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=bool_)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask that is true where all of these are.

    Raises:
        ArgumentError: for something that is no function.
    """
    _check_callable(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=bool_)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _check_callable(mask_mods: tuple[Any, ...]) -> None:
    for each in mask_mods:
        if not callable(each):
            raise ArgumentError(f"a mask_mod is a function, not {type(each).__name__}")


def create_mask(
    mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """The mask ``(B, H, Q_LEN, KV_LEN)`` of a mask_mod, or of the scores that a score_mod makes minus infinity."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(*sizes, device)
    if _is_score_mod(mod_fn):
        found: Tensor = call(
            "logical_not", call("isneginf", _over_places(mod_fn, True)(zeros(sizes, device=device), *places))
        )
    else:
        found = _over_places(mod_fn, False)(*places)
    return found


def create_block_mask(
    mask_mod: _mask_mod_signature, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
    separate_full_blocks: bool = True, compute_dq_write_order: bool = False, dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip
    """A mask for :func:`flex_attention`, by blocks of queries and keys.

    Args:
        mask_mod: tells from the numbers of batch, head, query and key whether the query looks at the key.
        B, H: how many batches and heads the mask tells apart; None for 1.
        BLOCK_SIZE: of blocks, or of their queries and keys.
        separate_full_blocks: whether blocks without gaps are listed by themselves.
        _compile, compute_dq_write_order, dq_kv_order: for PyTorch's kernels, without effect.
    """
    if _is_score_mod(mask_mod):
        raise AssertionError(f"create_block_mask takes a mask_mod, of 4 arguments, not {mask_mod!r:.60}")
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    partial, full = _blocks_of(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), *sizes, separate_full_blocks)
    none: tuple[Tensor | None, Tensor | None] = (None, None)
    return BlockMask.from_kv_blocks(
        *_ordered(partial), *(none if full is None else _ordered(full)), BLOCK_SIZE=sizes, mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )  # fmt: skip


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: FlexKernelOptions | None = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Attention with a function of the program's between scores and softmax.

    Args:
        query: ``(B, Hq, L, E)``; keys ``(B, Hkv, S, E)``, values ``(B, Hkv, S, Ev)``.
        score_mod: gives a score from the plain one and the numbers of batch, head, query and key.
        block_mask: which queries look at which keys.
        scale: of products, ``1 / sqrt(E)`` by default.
        enable_gqa: there may be fewer heads of keys and values than of queries.
        return_lse, return_aux: return more than the result.
        kernel_options: without effect.

    Raises:
        ArgumentValueError: for shapes that do not fit.
    """
    _check_shapes(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ArgumentValueError("return_lse and return_aux are two ways to ask for one thing: give return_aux")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (call("repeat_interleave", t, groups, 1) for t in (key, value))
    if key.shape[0] != query.shape[0]:
        key, value = (t.expand(query.shape[0], *t.shape[1:]) for t in (key, value))
    working = float64 if query.dtype is float64 else float32
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query.to(working) @ key.to(working).transpose(-2, -1)) * factor
    scores = _changed(scores, score_mod, block_mask)
    weights = (
        call("nan_to_num", _softmax(scores), 0.0)
        if block_mask is not None or score_mod is not None
        else _softmax(scores)
    )
    result = weights.to(query.dtype) @ value.to(query.dtype)
    if return_aux is not None:
        return result, AuxOutput(
            _log_sum(scores) if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None
        )
    return (result, _log_sum(scores)) if return_lse else result


def _changed(scores: Any, score_mod: Any, block_mask: BlockMask | None) -> Any:
    """Scores after both functions: minus infinity where the mask is false."""
    batches, heads, queries, keys = scores.shape
    sizes = (batches, heads, queries, keys)
    if score_mod is not None and score_mod is not _identity:
        scores = _over_places(score_mod, True)(scores, *_places(*sizes, scores.device)).to(scores.dtype)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        mask = _over_places(block_mask.mask_mod, False)(*_places(*sizes, scores.device))
        scores = call("masked_fill", scores, call("logical_not", mask), -math.inf)
    return scores


def _softmax(scores: Tensor) -> Any:
    return call("softmax", scores, -1)


def _log_sum(scores: Tensor) -> Tensor:
    found: Tensor = call("logsumexp", scores, -1)
    return found


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim != 4:
            raise Unsupported(f"flex_attention: the {name} has 4 dimensions, not {tensor.ndim}")
    if query.shape[-1] != key.shape[-1]:
        raise ArgumentValueError(f"flex_attention: queries have {query.shape[-1]} features, keys {key.shape[-1]}")
    (batches, heads), (other_batches, other_heads) = query.shape[:2], key.shape[:2]
    if not enable_gqa and heads != other_heads:
        raise ArgumentValueError(
            f"flex_attention: {heads} heads of queries, {other_heads} of keys and values: enable_gqa=True allows this"
        )
    if enable_gqa and heads % other_heads:
        raise ArgumentValueError(f"flex_attention: {heads} heads of queries are no multiple of {other_heads} of keys")
    if batches != other_batches and (block_mask is None or other_batches != 1):
        raise ArgumentValueError(f"flex_attention: {batches} batches of queries, {other_batches} of keys and values")
    if block_mask is None:
        return
    if block_mask.mask_mod is _sliced_mask_mod_error:
        raise ArgumentError("flex_attention: the block mask was sliced and has no mask_mod: set that of the whole one")
    if block_mask.BLOCK_SIZE[0] == block_mask.BLOCK_SIZE[1] == _LARGE_SPARSE_BLOCK_SIZE:
        return
    if tuple(block_mask.shape[-2:]) != (query.shape[-2], key.shape[-2]):
        raise ArgumentValueError(
            f"flex_attention: block_mask is for {block_mask.shape[-2]} queries and {block_mask.shape[-1]} keys, "
            f"there are {query.shape[-2]} and {key.shape[-2]}: make another, or crop it by block_mask._adjust"
        )
