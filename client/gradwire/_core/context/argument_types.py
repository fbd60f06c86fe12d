"""Names for annotations: kinds of arguments that many functions take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .size import device

Device: TypeAlias = device | str | int | None
"""Where a tensor is, as a program says it. None is the default."""
Extents: TypeAlias = int | Sequence[int]
"""One number for all dimensions, or one for each."""
Shape: TypeAlias = Sequence[int]
"""The extents of all dimensions."""
