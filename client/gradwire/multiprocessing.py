"""``torch.multiprocessing``: Python's, whose processes see gradwire in torch's place as their parent does.

Each process opens a session of its own, or joins one by its id (``gradwire.connect(session=...)``), where tensors are
found by name. Tensors themselves are not sent from one process to another.
"""

from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _python

__all__ = [*_python, "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]


def get_all_sharing_strategies() -> set[str]:
    """How memory of tensors can be shared between processes: in no way."""
    return set()


def get_sharing_strategy() -> str:
    """``"none"``."""
    return "none"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: no memory is shared."""
