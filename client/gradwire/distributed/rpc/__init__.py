"""``torch.distributed.rpc``: not available; names that are refused where they are called."""

from ..refused import fill
from . import api

__all__ = ["api", "is_available"]


def is_available() -> bool:
    """No."""
    return False


fill(__name__)
