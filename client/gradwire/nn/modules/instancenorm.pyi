# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.lazy_layers import LazyInstanceNorm1d as LazyInstanceNorm1d, LazyInstanceNorm2d as LazyInstanceNorm2d, LazyInstanceNorm3d as LazyInstanceNorm3d
from gradwire.nn.normalization import InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d, InstanceNorm3d as InstanceNorm3d, _InstanceNorm as _InstanceNorm

