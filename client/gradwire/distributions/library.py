"""The names that formulas of distributions are written in: gradwire's own, looked up when they are used."""

from __future__ import annotations

from typing import Any

import gradwire

from ..dispatch import call

__all__ = ["call", "gw"]

gw: Any = gradwire
