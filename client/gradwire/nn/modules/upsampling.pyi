# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.common_types import _ratio_2_t as _ratio_2_t, _ratio_any_t as _ratio_any_t, _size_2_t as _size_2_t, _size_any_t as _size_any_t
from gradwire.nn.reshaping import Upsample as Upsample, UpsamplingBilinear2d as UpsamplingBilinear2d, UpsamplingNearest2d as UpsamplingNearest2d

