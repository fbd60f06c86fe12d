"""``torch.compiler``: the client compiles nothing. A step that repeats is recognised by the server as it is."""

from __future__ import annotations

from typing import Any, TypeVar

Anything = TypeVar("Anything")


def compile(model: Any = None, **options: Any) -> Any:
    """The function or module, unchanged; as a decorator with options, one that changes nothing."""
    return (lambda function: function) if model is None else model


def is_compiling() -> bool:
    """Never."""
    return False


def is_dynamo_compiling() -> bool:
    """Never."""
    return False


def disable(fn: Any = None, recursive: bool = True, **_: Any) -> Any:
    """The function, unchanged: it was not compiled anyway."""
    return (lambda function: function) if fn is None else fn


def reset() -> None:
    """There is nothing to forget."""


def allow_in_graph(fn: Anything) -> Anything:
    """The function, unchanged."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """There are no graphs to begin."""
