"""``torch.compiler``: what surrounds :func:`gradwire.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ._core.compiling.function import compile, forget_all

Anything = TypeVar("Anything")

__all__ = ["allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling",
           "reset"]  # fmt: skip


def is_compiling() -> bool:
    """Never: what is recorded of a function is what it does."""
    return False


def is_dynamo_compiling() -> bool:
    """Never."""
    return False


@overload
def disable(fn: None = None, recursive: bool = True, **_: Any) -> Callable[[Anything], Anything]: ...
@overload
def disable(fn: Anything, recursive: bool = True, **_: Any) -> Anything: ...


def disable(fn: Any = None, recursive: bool = True, **_: Any) -> object:
    """The function, unchanged: what it does is recorded as part of what calls it."""
    return (lambda function: function) if fn is None else fn


def reset() -> None:
    """Forget all that was recorded for replays, of every compiled function."""
    forget_all()


def allow_in_graph(fn: Anything) -> Anything:
    """The function, unchanged."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """There are no graphs to begin."""
