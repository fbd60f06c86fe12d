"""``torch.version``: the PyTorch version whose behaviour gradwire follows, and gradwire's own version.

``cuda`` and ``hip`` are None because a client links no GPU library. ``torch.cuda`` describes the server's devices.
"""

from typing import Final

from ...torch_version import TorchVersion
from .distribution import torch_version

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__: Final = TorchVersion(torch_version())
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str = "Unknown"  # as PyTorch's own outside of a repository
