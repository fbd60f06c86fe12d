"""The ops that take the dtypes for storage, as on a CPU in PyTorch. Derived by ``tools.storage_dtypes``."""

from __future__ import annotations

from typing import Final

from . import dtypes
from .dtypes import DType

_COMMON: Final = {
    "alias", "all", "any", "as_strided", "as_strided_scatter", "broadcast_to", "cat", "chunk", "clone", "conj",
    "contiguous", "copy_", "detach", "diag", "diag_embed", "diagonal", "diagonal_scatter", "embedding", "empty",
    "empty_like", "eq", "expand", "fill_", "flatten", "full", "full_like", "index", "index_select", "isnan", "isreal",
    "kron", "movedim", "mul", "narrow", "ne", "nonnegative", "ones", "ones_like", "outer", "pack_padded", "pad",
    "pad_packed", "pad_sequence", "permute", "positive", "real", "repeat", "repeat_interleave", "reshape", "roll",
    "select", "select_scatter", "slice", "slice_scatter", "split", "squeeze", "stack", "t", "tile", "to", "transpose",
    "unbind", "unflatten", "unfold", "unsafe_split", "unsqueeze", "upload", "view", "view_dtype", "where", "zero_",
    "zeros", "zeros_like",
}  # fmt: skip
_UNSIGNED: Final = _COMMON | {
    "argsort", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "cosine_embedding_loss", "cosine_similarity",
    "cumprod", "cumsum", "floor", "isclose", "isfinite", "isinf", "isneginf", "isposinf", "msort", "nan_to_num",
    "nansum", "prod", "randint", "randint_like", "round", "signbit", "sort", "sum", "trunc", "unique",
    "unique_consecutive",
}  # fmt: skip
_FLOAT8_E4M3FN: Final = _COMMON | {
    "abs", "addbmm", "addmm", "diagonal_backward", "eye", "index_backward", "index_put", "linear", "masked_select",
    "matmul", "mm", "select_backward", "slice_backward",
}  # fmt: skip
_FLOAT8_E5M2: Final = _COMMON | {
    "abs", "addbmm", "addmm", "diagonal_backward", "eye", "index_backward", "index_put", "isfinite", "isinf", "linear",
    "masked_select", "matmul", "mm", "select_backward", "slice_backward",
}  # fmt: skip

TAKEN: Final[dict[DType, set[str]]] = {
    dtypes.uint16: _UNSIGNED,
    dtypes.uint32: _UNSIGNED,
    dtypes.uint64: _UNSIGNED,
    dtypes.float8_e4m3fn: _FLOAT8_E4M3FN,
    dtypes.float8_e5m2: _FLOAT8_E5M2,
}
"""By dtype, the names of the ops that take it; an in-place form goes by that of its op."""
