"""``torch.version``: the PyTorch version whose behaviour gradwire follows, and gradwire's own version.

``cuda`` and ``hip`` are None because a client links no GPU library. ``torch.cuda`` describes the server's devices.
"""

from ..._core.context.version import __version__ as _own

__version__ = f"2.13.0+gradwire.{_own}"
cuda = None
hip = None
xpu = None
git_version = None
debug = False
