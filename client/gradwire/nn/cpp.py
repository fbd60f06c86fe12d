"""``torch.nn.cpp``: modules of PyTorch's C++ library, which gradwire has not."""

from .._core.surface.stand_ins import stand_ins as _stand_ins

globals().update(_stand_ins(__name__, "ModuleWrapper OrderedDictWrapper", "modules are written in Python"))
