# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.lazy_layers import LazyLinear as LazyLinear
from gradwire.nn.linear import Bilinear as Bilinear, Identity as Identity, Linear as Linear, NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear

