"""``torch.utils._cxx_pytree``: the same as :mod:`gradwire.utils._pytree`, which has no other implementation."""

from __future__ import annotations

from . import _pytree

__all__ = [name for name in _pytree.__all__ if name != "LeafSpec"]
globals().update({name: getattr(_pytree, name) for name in __all__})
