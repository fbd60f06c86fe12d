"""``torch.nn.quantized.dynamic``: the older name of ``torch.ao.nn.quantized.dynamic``."""

from ...._core.surface.unsupported import explaining as _explaining
from ....ao.nn.quantized.dynamic import *  # noqa: F403

__getattr__ = _explaining(__name__)
