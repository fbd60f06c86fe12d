"""``functorch.experimental``: names that are refused where they are called, and one that is not."""

from .._core.surface.stand_ins import stand_ins as _stand_ins
from ..func import hessian, jacfwd, jvp

__all__ = ["hessian", "jacfwd", "jvp"]

globals().update(
    _stand_ins(
        "functorch.experimental", "chunk_vmap functionalize replace_all_batch_norm_modules_",
        "vmap(chunk_size=) maps in pieces, and GroupNorm normalises each sample",
    )
)  # fmt: skip
