"""NumPy's arithmetic by several threads: the same functions to the last bit, for large arrays.

Compiled kernels fill the table when they are loaded; plans then call what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

BY_THREADS: Final[dict[str, Callable[..., Any]]] = {}
"""By the name of NumPy's function. Operands of any kind are taken: what the kernels do not know goes to NumPy."""

LARGE: Final = 1 << 18
"""Elements of a result from which several threads are worth their call."""
