"""The entries of the database by name, and the excluded ones with the reason."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import torch
from torch.testing._internal.common_methods_invocations import op_db

import gradwire_protocol.dtypes as dtypes

DTYPES: Final = {getattr(torch, d.name.removesuffix("_")): d.name.removesuffix("_") for d in dtypes.COMPUTED}
CARRIED: Final = frozenset(DTYPES) | {getattr(torch, d.name) for d in dtypes.STORED}
"""The dtypes that results may have."""

_SPARSE: Final = "sparse tensors are not part of gradwire"
_INTERNAL: Final = "internal to torch: nothing that a program names"
_JITERATOR: Final = "compiles CUDA source that a program brings; gradwire executes no client's code"

LEFT_OUT: Final[dict[str, str]] = {
    "sparse.sampled_addmm": _SPARSE, "sparse.mm": _SPARSE, "to_sparse": _SPARSE,
    "_segment_reduce": _INTERNAL, "_chunk_cat": _INTERNAL, "_unsafe_masked_index": _INTERNAL,
    "_unsafe_masked_index_put_accumulate": _INTERNAL, "_softmax_backward_data": _INTERNAL,
    "_native_batch_norm_legit": _INTERNAL, "_batch_norm_with_update": _INTERNAL, "_upsample_bilinear2d_aa": _INTERNAL,
    "torch._scaled_mm": _INTERNAL, "torch._scaled_mm_v2": _INTERNAL, "torch.ops.aten._safe_softmax.default": _INTERNAL,
    "torch.ops.aten._flash_attention_forward": _INTERNAL, "torch.ops.aten._efficient_attention_forward": _INTERNAL,
    "max_pool2d_with_indices_backward": _INTERNAL, "native_dropout_backward": _INTERNAL, "grid_sampler_2d": _INTERNAL,
    "grid_sampler_3d": _INTERNAL, "slice": _INTERNAL,
    "jiterator_unary": _JITERATOR, "jiterator_binary": _JITERATOR, "jiterator_4inputs_with_extra_args": _JITERATOR,
    "jiterator_binary_return_by_ref": _JITERATOR, "jiterator_2inputs_2outputs": _JITERATOR,
    "chalf": "complex32 is not a dtype of gradwire",
}  # fmt: skip
"""Names of the database that do not count, and why."""

RANDOM: Final = frozenset(
    "bernoulli cauchy exponential geometric log_normal multinomial nn.functional.alpha_dropout nn.functional.dropout "
    "nn.functional.dropout2d nn.functional.dropout3d nn.functional.feature_alpha_dropout "
    "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.rrelu normal pca_lowrank "
    "rand_like randint randint_like randn randn_like svd_lowrank uniform nn.functional.multi_head_attention_forward "
    "nn.functional.scaled_dot_product_attention empty empty_like empty_permuted empty_strided new_empty "
    "new_empty_strided resize_ resize_as_".split()
)
"""What comes out of them is drawn, or is memory as it was found: shapes and dtypes are compared, values are not, unless
two runs of torch with different seeds agree on a sample."""

PHASED: Final = frozenset(
    "linalg.eig linalg.eigh linalg.svd svd svd_lowrank pca_lowrank linalg.lstsq geqrf linalg.lu_factor "
    "linalg.ldl_factor linalg.ldl_factor_ex".split()
)
"""Results are unique only up to a factor; the database's own reduction to what is unique is compared."""


TIED: Final = frozenset("sort argsort topk kthvalue mode median nanmedian msort min max".split())
"""Their indices point at any of several equal elements; what they point at is compared."""


WRONG_IN_TORCH: Final = {
    "as_strided_scatter": "torch's gradient of self is that of the part, not of what the part leaves",
    "logcumsumexp float16": "torch loses whole terms: 0 where float64 gives -1.1",
    "logcumsumexp bfloat16": "torch loses whole terms: 0 where float64 gives 4.1",
}
"""Entries whose gradients torch gets wrong, in all dtypes or in one; ours are held by gradcheck."""


TIMES_ALPHA: Final = frozenset("add sub rsub __radd__ __rsub__".split())
"""PyTorch multiplies an operand by ``alpha``, 1 as a complex number, which makes NaN of complex infinities where sums
without it have none; what it says there is not compared."""


ZERO_TO_ZERO: Final = frozenset("pow __rpow__ float_power".split())
"""PyTorch says NaN of a complex ``0 ** 0`` where the exponent is a tensor, and 1 where it is a number; 1 it is here."""


def label(entry: Any) -> str:
    """The name of an entry; one name can have several variants."""
    return f"{entry.name}/{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


@cache
def all_entries() -> dict[str, Any]:
    """Every entry of the database that counts, by label."""
    return {label(entry): entry for entry in op_db if entry.name not in LEFT_OUT}


def chosen(names: list[str]) -> dict[str, Any]:
    """Entries whose label or name is given, or begins with what is given before a ``*``; all of them for none."""
    if not names:
        return all_entries()
    found = {
        key: entry
        for key, entry in all_entries().items()
        if any(n in (key, entry.name) or (n.endswith("*") and key.startswith(n[:-1])) for n in names)
    }
    if not found:
        raise SystemExit(f"no entry of the database is called {' or '.join(names)}")
    return found
