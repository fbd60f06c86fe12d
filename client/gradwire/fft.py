"""Discrete Fourier transforms, as ``torch.fft`` names them; and the frequencies that belong to them.

``norm`` says where the number of points n is divided by: ``"backward"`` (the default) in the inverse transforms,
``"forward"`` in the others, ``"ortho"`` its square root in both. ``n`` and ``s`` cut the input or fill it up with
zeros first. Integers become floats; float16 and bfloat16 are refused, as by torch on a CPU.
"""

from ._core.composed import fourier as _fourier
from ._core.composed.fourier import *  # noqa: F403
from ._core.surface.unsupported import explaining as _explaining

__all__ = _fourier.__all__

__getattr__ = _explaining(__name__)
