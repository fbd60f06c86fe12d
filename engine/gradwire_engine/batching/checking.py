"""Conditions on values, of all samples at once."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .level import Level, rule


@rule("check_all")
def check_all(x: Level, mask: Tensor, message: str, value: Tensor | None) -> Any:
    # Which sample fails does not matter: all of them come to nothing.
    x.engine.call("check_all", x.inside(mask), message)
    return ()
