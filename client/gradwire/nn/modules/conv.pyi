# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.conv import Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose1d as ConvTranspose1d, ConvTranspose2d as ConvTranspose2d, ConvTranspose3d as ConvTranspose3d, _ConvNd as _ConvNd, _ConvTransposeNd as _ConvTransposeNd
from gradwire.nn.lazy_layers import LazyConv1d as LazyConv1d, LazyConv2d as LazyConv2d, LazyConv3d as LazyConv3d, LazyConvTranspose1d as LazyConvTranspose1d, LazyConvTranspose2d as LazyConvTranspose2d, LazyConvTranspose3d as LazyConvTranspose3d

