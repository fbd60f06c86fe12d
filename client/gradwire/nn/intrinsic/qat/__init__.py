"""``torch.nn.intrinsic.qat``: the older name of ``torch.ao.nn.intrinsic.qat``."""

from ...._core.surface.module_aliases import forwarding as _forwarding

__getattr__, __dir__ = _forwarding("gradwire.ao.nn.intrinsic.qat")
