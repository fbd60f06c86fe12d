"""``torch.nn.qat.dynamic``: the older name of ``torch.ao.nn.qat.dynamic``."""

from ...._core.surface.unsupported import explaining as _explaining
from ....ao.nn.qat.dynamic import *  # noqa: F403

__getattr__ = _explaining(__name__)
