"""``torch.nn.intrinsic.qat``: the older name of ``torch.ao.nn.intrinsic.qat``."""

from ...._core.surface.unsupported import explaining as _explaining
from ....ao.nn.intrinsic.qat import *  # noqa: F403

__getattr__ = _explaining(__name__)
