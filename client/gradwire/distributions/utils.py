"""What programs that write distributions of their own import from here, under the name PyTorch gives this module."""

from typing import Any

from .library import gw
from .parameters import (
    broadcast_all,
    clamp_probs,
    euler_constant,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from .parameters import sum_rightmost as _sum_rightmost  # noqa: F401  (its name in PyTorch)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Standard normal numbers."""
    return gw.randn(tuple(shape), dtype=dtype, device=device)


__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip
