"""Operations on what was made in inference mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.table import Op

from ..context.handles import TensorBase


def is_of_inference_alone(op: Op, places: Sequence[int], values: list[Any]) -> bool:
    """Whether all operands, which are at these places, were made in inference mode: such an operation is not recorded,
    whatever requires grad. A number that becomes a tensor is one that was made outside, and a copy is one that is
    written to."""
    if op.duplicates:
        return False
    for i in places:
        value = values[i]
        if isinstance(value, TensorBase):
            if not value._inference:
                return False
        elif type(value) is list or type(value) is tuple:
            if any(isinstance(t, TensorBase) and not t._inference for t in value):
                return False
        elif value is not None and (op.params[i].name in op.wrapped or op.name == "rsub"):
            return False
    return True
