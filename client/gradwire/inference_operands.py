"""Operations on what was made in inference mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gradwire_protocol.table import Op

from .tensor import Tensor

NUMBERS_AS_TENSORS: Final = frozenset({
    ("add", "other"), ("sub", "other"), ("mul", "other"), ("div", "other"), ("where", "self"), ("where", "other"),
    ("remainder", "self"),
})  # fmt: skip
"""Operands, by op and name, that PyTorch makes tensors of where they are numbers, and that have an edge."""
MADE_OUTSIDE: Final = NUMBERS_AS_TENSORS | {("rsub", "other")}
"""Those that become tensors, with an edge or without."""
COPIES: Final = frozenset({"clone", "to"})


def is_of_inference_alone(op: Op, places: Sequence[int], values: list[Any]) -> bool:
    """Whether all operands, which are at these places, were made in inference mode: such an operation is not recorded,
    whatever requires grad. A number that becomes a tensor is one that was made outside, and a copy is one that is
    written to."""
    name = (op if op.base is None else op.base).name
    if name in COPIES:
        return False
    for i in places:
        value = values[i]
        if isinstance(value, Tensor):
            if not value._inference:
                return False
        elif type(value) is list or type(value) is tuple:
            if any(isinstance(t, Tensor) and not t._inference for t in value):
                return False
        elif value is not None and (name, op.params[i].name) in MADE_OUTSIDE:
            return False
    return True
