"""How a loss puts its numbers together: ``reduction``, and the two arguments that it replaced in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from ...dispatch import call


def current_spelling(size_average: Any, reduce: Any, stacklevel: int = 3) -> str:
    """What ``reduction`` says in place of ``size_average`` and ``reduce``, of which one is given. Warns."""
    if reduce is not None and not reduce:
        found = "none"
    else:
        found = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"size_average and reduce were replaced: write reduction={found!r}", UserWarning, stacklevel=stacklevel
    )
    return found


def chosen_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that a loss was called with, in whichever of PyTorch's spellings.

    Raises:
        ArgumentValueError: for a name that is none.
    """
    if size_average is not None or reduce is not None:
        return current_spelling(size_average, reduce, 4)
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is 'mean' now", UserWarning, stacklevel=3)
        return "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentValueError(f"reduction is 'none', 'mean' or 'sum', not {reduction!r}")
    return reduction


def reduced(losses: Any, reduction: str) -> Any:
    """Losses summed, averaged or as they are."""
    return losses if reduction == "none" else call(reduction, losses)
