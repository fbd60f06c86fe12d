"""Which device is meant where a program names none: for new tensors, and by ``cuda`` without a number.

As in PyTorch both are a thread's own.
"""

from __future__ import annotations

import threading


class _Places(threading.local):
    entered: tuple[str, ...] = ()  # the devices of `with torch.device(...)`, the innermost last
    default: str | None = None  # what set_default_device chose
    cuda: int = 0

    @property
    def current(self) -> str | None:
        """The device of new tensors; ``None`` is the session's."""
        return self.entered[-1] if self.entered else self.default


PLACES = _Places()
