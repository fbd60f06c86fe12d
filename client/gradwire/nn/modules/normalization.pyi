# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.normalization import CrossMapLRN2d as CrossMapLRN2d, GroupNorm as GroupNorm, LayerNorm as LayerNorm, LocalResponseNorm as LocalResponseNorm, RMSNorm as RMSNorm

