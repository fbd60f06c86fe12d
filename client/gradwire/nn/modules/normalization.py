"""``torch.nn.modules.normalization``: normalisation of samples."""

from ..normalization import GroupNorm, LayerNorm, RMSNorm
from ..response_norm import CrossMapLRN2d, LocalResponseNorm

__all__ = [
    "CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm",
]  # fmt: skip
