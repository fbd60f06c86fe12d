"""Conditions on values."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.ops.checking import LONGEST_MESSAGE

from ..autograd.registry import kernel
from ..runtime.arrays import Array, Namespace

_SHOWN = 6


@kernel("check_all", half=True)
def check_all(xp: Namespace, mask: Array, message: str, value: Array | None) -> Any:
    # On a GPU this waits for it: to look is what the op is for.
    if bool(xp.all(mask)):
        return ()
    text = message[:LONGEST_MESSAGE]
    if value is None:
        raise ArgumentValueError(text)
    rows = mask.reshape(-1)
    refused = xp.nonzero(~rows)[0]
    text += f" ({int(refused.size):,} of {int(rows.size):,} refused"
    if value.shape[: mask.ndim] == mask.shape:
        first = value.reshape(rows.size, -1)[int(refused[0])]
        shown = ", ".join(f"{_plain(v):.6g}" for v in first[:_SHOWN].tolist())
        text += f", the first is {shown}{', ...' if first.size > _SHOWN else ''}"
    raise ArgumentValueError(text + ")")


def _plain(value: int) -> float:
    return value if isinstance(value, complex) else float(value)
