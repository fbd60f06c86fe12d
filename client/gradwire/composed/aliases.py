"""Other names that PyTorch has for the same thing: as a function, a method and in place, wherever those exist."""

from __future__ import annotations

from typing import Final

from ..methods import FUNCTIONS
from ..tensor import Tensor

ALIASES: Final = {
    "absolute": "abs", "negative": "neg", "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "clip": "clamp",
    "swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim", "concat": "cat", "concatenate": "cat",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "fix": "trunc", "ger": "outer", "row_stack": "vstack",
}  # fmt: skip


def offer_aliases() -> None:
    """Offer what is known by the other names, too; called when all functions are there."""
    for alias, name in ALIASES.items():
        for suffix in ("", "_"):
            if name + suffix in FUNCTIONS:
                FUNCTIONS.setdefault(alias + suffix, FUNCTIONS[name + suffix])
            if hasattr(Tensor, name + suffix) and not hasattr(Tensor, alias + suffix):
                setattr(Tensor, alias + suffix, getattr(Tensor, name + suffix))
