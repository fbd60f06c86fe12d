"""Signal processing, as ``torch.signal`` has it: the windows."""

from . import windows

__all__ = ["windows"]
