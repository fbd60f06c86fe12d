"""``torch._dynamo.external_utils``: questions that a function asks about its compiler."""

from __future__ import annotations

from functools import wraps
from typing import Any

from ..compiler import is_compiling

__all__ = ["is_compiling", "wrap_inline"]


def wrap_inline(fn: Any) -> Any:
    """A function that calls another one."""

    @wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner
