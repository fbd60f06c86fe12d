"""``torch._guards``: the state of PyTorch's compiler, which is nothing here."""

from __future__ import annotations

from typing import Any


def active_fake_mode() -> None:
    """None: there is no mode of tensors without values; ``with torch.device("meta")`` makes such tensors."""
    return


def detect_fake_mode(inputs: Any = None) -> None:
    """None: there is no mode of tensors without values."""
    return


class TracingContext:
    """The state of a trace that is being taken: there is none."""

    @staticmethod
    def try_get() -> None:
        """None."""
        return

    @staticmethod
    def get() -> None:
        """Raises ``RuntimeError``: no trace is being taken."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
