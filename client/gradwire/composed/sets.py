"""Distinct elements and membership."""

from __future__ import annotations

from typing import Any

from ..creation import tensor
from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor
from .arranging import ravel


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order; with their places and counts on request."""
    found = call("unique", input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return found if return_inverse or return_counts else found[0]


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without repetitions of the one before; with their places and counts on request."""
    found = call("unique_consecutive", input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return found if return_inverse or return_counts else found[0]


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Which elements occur among the others."""
    pool = test_elements if isinstance(test_elements, Tensor) else tensor(test_elements)
    asked = elements if isinstance(elements, Tensor) else tensor(elements)
    found = call("any", call("eq", call("unsqueeze", asked, -1), ravel(pool)), -1)
    return call("logical_not", found) if invert else found


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero. One round trip."""
    return bool(input)


for _function in (
    unique,
    unique_consecutive,
    isin,
    is_nonzero,
):
    offer(_function)
