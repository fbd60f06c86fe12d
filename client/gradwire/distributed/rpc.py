"""``torch.distributed.rpc``: not available; names that are refused where they are called."""

from .refused import fill


def is_available() -> bool:
    """No."""
    return False


fill(__name__)
