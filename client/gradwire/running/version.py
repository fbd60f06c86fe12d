"""``torch.version``: which PyTorch gradwire behaves like, and which gradwire it is.

``cuda`` and ``hip`` are None: no GPU library is linked into a client. What the server has is told by ``torch.cuda``.
"""

from ..version import __version__ as _own

__version__ = f"2.13.0+gradwire.{_own}"
cuda = None
hip = None
xpu = None
git_version = None
debug = False
