"""Who is told of each backward that is recorded: what averages gradients over ranks."""

from __future__ import annotations

from typing import Any, Final, Protocol
from weakref import ref


class BackwardListener(Protocol):
    """Told of each backward of the program, after its record."""

    def arrived(self, leaves: list[Any]) -> None:
        """A backward has given these leaves a gradient."""


LISTENERS: Final[list[ref[BackwardListener]]] = []
"""In the order in which they came, which is the same in all ranks of a job."""


def listen(listener: BackwardListener) -> None:
    """Tell an object of each backward from now on, as long as it is there."""
    LISTENERS.append(ref(listener, LISTENERS.remove))


def tell_listeners(leaves: list[Any]) -> None:
    """A backward has given these leaves a gradient."""
    for reference in LISTENERS:
        listener = reference()
        if listener is not None:
            listener.arrived(leaves)
