"""Elementwise functions that are a spelling of ops of the table."""

from __future__ import annotations

from typing import Any

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def polygamma(n: int, input: Tensor) -> Any:
    """The ``n``-th derivative of digamma, for ``n >= 0``.

    Raises:
        ArgumentError: for a negative ``n``.
    """
    return call("polygamma", input, n)


offer(polygamma, method=False)
