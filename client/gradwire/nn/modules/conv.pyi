# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.common_types import _size_1_t as _size_1_t, _size_2_t as _size_2_t, _size_3_t as _size_3_t
from gradwire.nn.conv import Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose1d as ConvTranspose1d, ConvTranspose2d as ConvTranspose2d, ConvTranspose3d as ConvTranspose3d, _ConvNd as _ConvNd, _ConvTransposeMixin as _ConvTransposeMixin, _ConvTransposeNd as _ConvTransposeNd
from gradwire.nn.lazy_layers import LazyConv1d as LazyConv1d, LazyConv2d as LazyConv2d, LazyConv3d as LazyConv3d, LazyConvTranspose1d as LazyConvTranspose1d, LazyConvTranspose2d as LazyConvTranspose2d, LazyConvTranspose3d as LazyConvTranspose3d
from gradwire.nn.modules.utils import _pair as _pair, _reverse_repeat_tuple as _reverse_repeat_tuple, _single as _single, _triple as _triple

