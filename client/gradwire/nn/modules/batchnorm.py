"""``torch.nn.modules.batchnorm``: batch normalisation."""

from ..lazy_layers import LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d
from ..normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm, _BatchNorm, _NormBase

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm", "_BatchNorm", "_NormBase",
]  # fmt: skip
