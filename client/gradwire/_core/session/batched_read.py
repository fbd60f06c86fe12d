"""Several values in one round trip."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from ..tensor.tensor import Tensor


def fetch(*tensors: Tensor) -> tuple[Any, ...]:
    """The values of several tensors of one session, in one round trip: Python numbers for 0-dim tensors, NumPy arrays
    for the others. Gradients are not recorded through it.

    Raises:
        ArgumentTypeError: for something that is not a tensor.
    """
    if not tensors:
        return ()
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(f"fetch takes tensors, not {type(tensor).__name__}")
    values = tensors[0]._session.read(list(tensors))
    return tuple(v.item() if v is not None and v.ndim == 0 else v for v in values)
