"""Marks of functions whose interface PyTorch keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Marked = TypeVar("_Marked")


def compatibility(is_backward_compatible: bool) -> Callable[[_Marked], _Marked]:
    """A decorator that notes it in ``_backward_compatible``."""

    def mark(function: _Marked) -> _Marked:
        try:
            function._backward_compatible = is_backward_compatible  # type: ignore[attr-defined]
        except (AttributeError, TypeError):
            pass  # objects without attributes stay as they are
        return function

    return mark


__all__ = ["compatibility"]
