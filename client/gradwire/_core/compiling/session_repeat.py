"""``Session.repeat``, which loads what it stands on when it is first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..session.session import Session


def repeat(
    self: Session, step: Any, times: int, *args: Any, after: Callable[[], Any] | None = None, **kwargs: Any
) -> Any:
    """Call a compiled function ``times`` times, in one message: a loop that the server runs by itself.

    Arguments are the same each time, but for those in ``gradwire.each(...)``, of which each iteration gets the next
    row: of indices, say, with which the function takes its batch from data on the server. All that the function
    changes is changed as by ``times`` calls. Returns what it returns, with the tensors of all iterations stacked
    along a new first dimension, and without history. Does not wait.

    The first iterations are ordinary calls, as long as the function's call is not recorded yet. An iteration in
    which something fails on the server is the last one, and the error names it.

    Args:
        after: called here after each iteration, to change numbers of an optimizer: a schedule's ``step``.

    Raises:
        ArgumentTypeError: for a function that is not compiled.
        ArgumentError: for one whose calls cannot be replayed, or do not leave things as the next has to find them.
    """
    from . import repeating

    return repeating.repeat(self, step, times, *args, after=after, **kwargs)


Session.repeat = repeat  # type: ignore[method-assign]
