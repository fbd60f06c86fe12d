"""``torch.distributed.distributed_c10d``: where PyTorch defines most of what :mod:`gradwire.distributed` has."""

from .. import distributed as _distributed

__all__ = sorted(_distributed.__all__)
globals().update({name: getattr(_distributed, name) for name in __all__})
