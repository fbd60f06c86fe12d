"""gradwire's functions under the names that PyTorch's dispatcher gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import gradwire as gw
from gradwire._core.surface.methods import FUNCTIONS

_HOMES: Final[dict[str, Any]] = {"linalg_": gw.linalg, "fft_": gw.fft, "special_": gw.special}


def function_of(name: str, op: Any) -> Callable[..., Any] | None:
    """The function that computes an operation of PyTorch's, with the same arguments; None if there is none."""
    if name.startswith("_"):
        return None
    for prefix, home in _HOMES.items():
        if name.startswith(prefix):
            found = vars(home).get(name.removeprefix(prefix))
            return found if callable(found) else None
    for owner in (FUNCTIONS, vars(gw), vars(gw.nn.functional), vars(gw.Tensor)):
        found = owner.get(name)
        if callable(found) and not isinstance(found, type):
            return found
    return None
