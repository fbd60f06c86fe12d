"""Numbers that tell tensors apart by their bits."""

from __future__ import annotations

from ..dtypes import FLOATING, float64, int64, uint64
from ..errors import ArgumentError
from ..meta import Inference
from ..shapes import reduction
from ..table import Tensor, op
from .choosing import need_elements
from .reduction import Dims, refuse_complex


@op(keyword_only=("keepdim", "mode"))
def hash_tensor(self: Tensor, dim: Dims = None, keepdim: bool = False, mode: int = 0) -> Inference:
    """Exclusive or, over all elements or over ``dim``, of the bits of each as a float64 or int64, as a uint64.

    The order of the elements does not matter, and equal pairs cancel. ``mode`` 0 is the only one.
    """
    refuse_complex("hash_tensor", self)
    need_elements("hash_tensor", self, dim)
    if mode:
        raise ArgumentError(f"hash_tensor: mode must be 0, the exclusive or of the bits, not {mode}")
    wide = float64 if self.dtype.category == FLOATING else int64
    return reduction(self, dim, keepdim, dtype=uint64, compute=wide)
