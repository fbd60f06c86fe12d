"""``torch.utils.dlpack``."""

from .._core.surface.interchange import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
