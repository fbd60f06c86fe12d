"""Layers that differ from each other in a constant only, such as the number of dimensions or the function."""

from __future__ import annotations

from typing import Any

from .._core.modules.module import Module


class Variant(Module):
    """A layer whose subclasses name their constants in the class statement: ``class ReLU(..., function="relu")``."""

    def __init_subclass__(cls, **constants: Any) -> None:
        super().__init_subclass__()
        for name, value in constants.items():
            setattr(cls, name, value)
