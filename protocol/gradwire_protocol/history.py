"""How a view was created, which decides whether autograd can record writes to it. Client and engine share this."""

from __future__ import annotations

from typing import Final

PLAIN, MADE_IN_NO_GRAD, ONE_OF_SEVERAL, MADE_IN_INFERENCE, MADE_IN_FUNCTION = range(5)
"""A view created with gradients on, with gradients off, as one of several results of an op, in inference mode, or by a
custom Function."""

WHY_NOT: Final = {
    MADE_IN_NO_GRAD: (
        "this view was created with gradients disabled, but is modified in place with gradients enabled; create and "
        "modify it in the same mode"
    ),
    ONE_OF_SEVERAL: (
        "this tensor is one of several views returned by one op (split, unbind, ...) and cannot be modified in place "
        "with gradients enabled; clone it, or index the base instead"
    ),
    MADE_IN_INFERENCE: (
        "this view was created in inference mode, but is modified in place outside of it; create the view outside, or "
        "clone it"
    ),
    MADE_IN_FUNCTION: (
        "this view was returned by a custom Function, whose backward does not know about in-place changes; clone it"
    ),
}
"""Error texts for views whose writes cannot be recorded."""
