# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.reshaping import Upsample as Upsample, UpsamplingBilinear2d as UpsamplingBilinear2d, UpsamplingNearest2d as UpsamplingNearest2d

