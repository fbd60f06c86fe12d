"""How a view came to be, which decides whether writes to its memory can be recorded. Both sides keep the same book."""

from __future__ import annotations

from typing import Final

PLAIN, MADE_IN_NO_GRAD, ONE_OF_SEVERAL, MADE_IN_INFERENCE, MADE_IN_FUNCTION = range(5)
"""How a view was made: with gradients on, with gradients off, as one of several results of an op, in inference mode, by
a custom Function."""

WHY_NOT: Final = {
    MADE_IN_NO_GRAD: (
        "this view was made with gradients off, and its memory is changed with gradients on: make the view and the "
        "change in the same mode"
    ),
    ONE_OF_SEVERAL: (
        "this tensor is one of several views returned by one op (split, unbind, ...), whose memory cannot be changed "
        "in place with gradients on: clone it, or index the base instead"
    ),
    MADE_IN_INFERENCE: (
        "this view was made in inference mode, and its memory is changed outside of it: make the view outside, or "
        "clone it"
    ),
    MADE_IN_FUNCTION: (
        "this view was returned by a custom Function, whose derivative knows nothing of the change: clone it first"
    ),
}
"""What is said about views that cannot take part in history."""
