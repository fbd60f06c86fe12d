"""``torch.version``: the version of this client."""

from ._core.context.version import __version__

__all__ = ["__version__"]
