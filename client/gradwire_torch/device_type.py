"""The type of the device in PyTorch."""

from __future__ import annotations

from typing import Final

NAME: Final = "gradwire"

__all__ = ["NAME"]
