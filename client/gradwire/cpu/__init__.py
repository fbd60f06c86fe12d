"""``torch.cpu``: the server's CPU, with an API like that of ``torch.cuda``."""

from __future__ import annotations

from .._core.context.argument_types import Device
from .._core.session.current_session import current_session
from . import amp as amp


def is_available() -> bool:
    """Yes."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """``"cpu"``."""
    return "cpu"


def synchronize(device: Device = None) -> None:
    """Wait until everything recorded so far is done. One round trip."""
    current_session().synchronize()
