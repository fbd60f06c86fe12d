# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.lazy_layers import LazyBatchNorm1d as LazyBatchNorm1d, LazyBatchNorm2d as LazyBatchNorm2d, LazyBatchNorm3d as LazyBatchNorm3d
from gradwire.nn.normalization import BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d, SyncBatchNorm as SyncBatchNorm, _BatchNorm as _BatchNorm, _NormBase as _NormBase

