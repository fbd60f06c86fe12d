"""Writes to places given by indices, in the forms that the table does not have."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Any:
    """A copy in which ``input[..., index[i], ...]`` is ``src[i]``, or a number; added or multiplied with ``reduce``."""
    source = value if src is None else src
    if reduce is None:
        return call("scatter", input, dim, index, source)
    if reduce not in ("add", "multiply"):
        raise ArgumentError(f"reduce is 'add' or 'multiply', not {reduce!r}")
    if not isinstance(source, Tensor):
        source = call("full_like", index, source, dtype=input.dtype)
    return call("scatter_reduce", input, dim, index, source, "sum" if reduce == "add" else "prod", include_self=True)


for _function in (scatter,):
    offer(_function)
