"""Conditions on values, checked where the values are: what a client would otherwise make a round trip for."""

from __future__ import annotations

from ..dtypes import bool_
from ..errors import DTypeError, ShapeError
from ..meta import Inference, nothing
from ..shapes import common_device
from ..table import Tensor, op

LONGEST_MESSAGE = 2_000
"""So many characters of a message are kept; the rest is cut off."""


@op(results=0, exposed=())
def check_all(self: Tensor, message: str, value: Tensor | None = None) -> Inference:
    """Fail with a ValueError that says ``message`` unless every element of a mask is true. There is no result.

    As any failure it is raised at the next read, and costs no round trip before. With ``value``, a tensor whose
    shape the mask's broadcasts against, or of which it tells of whole rows, the error also says how much was refused
    and what the first refused value is.
    """
    if self.dtype is not bool_:
        raise DTypeError(f"check_all takes a mask, not a {self.dtype.name} tensor")
    if value is not None:
        if value.ndim < self.ndim:
            raise ShapeError(f"check_all: a mask of {self.ndim} dimensions does not match {value!r}")
        common_device(self, value)
    return nothing()
