"""``torch.nn.qat``: the older name of ``torch.ao.nn.qat``."""

from ..._core.surface.unsupported import explaining as _explaining
from ...ao.nn.qat import *  # noqa: F403

__getattr__ = _explaining(__name__)
