"""Entering and leaving a dimension that ``vmap`` maps over.

Between the two, a tensor looks as if the dimension were not there, and every op is applied to each of its slices. What
clients build ``vmap`` of; the rules of other ops see shapes without mapped dimensions.
"""

from __future__ import annotations

from typing import Final

from ..errors import ArgumentError, ArgumentValueError
from ..meta import Inference, new, view
from ..shapes import canonical_dim
from ..table import Tensor, op

MAX_LEVEL: Final = 64
RANDOMNESS: Final = ("error", "different", "same")


def _check_level(name: str, level: int) -> None:
    if not 1 <= level <= MAX_LEVEL:
        raise ArgumentError(f"{name}: level {level} is outside 1 to {MAX_LEVEL}")


@op(control=True, grad_fn="BatchBackward0", exposed=())
def batch(self: Tensor, dim: int, level: int, randomness: str = "error") -> Inference:
    """The tensor without one dimension, which is mapped over until :func:`unbatch`.

    ``level`` tells nested maps apart: the innermost has the highest. ``randomness`` says what random ops do on slices:
    fail, draw different numbers for each, or the same for all.
    """
    _check_level("batch", level)
    if randomness not in RANDOMNESS:
        raise ArgumentValueError(f"batch: randomness must be one of {', '.join(RANDOMNESS)}, not {randomness!r:.40}")
    if not self.shape:
        raise ArgumentError("batch: a 0-dim tensor has no dimension to map over")
    at = canonical_dim(dim, self.ndim)
    return view(self, self.shape[:at] + self.shape[at + 1 :], self.stride[:at] + self.stride[at + 1 :])


@op(control=True, grad_fn="UnbatchBackward0", exposed=())
def unbatch(self: Tensor, level: int, dim: int, size: int) -> Inference:
    """The tensor with the dimension mapped at this level as dimension ``dim`` again. One that is not mapped at this
    level is repeated ``size`` times."""
    _check_level("unbatch", level)
    if size < 0:
        raise ArgumentError(f"unbatch: a size of {size} is negative")
    at = canonical_dim(dim, self.ndim + 1)
    inner = new((size, *self.shape), self.dtype, self.device).outs[0].stride
    shape = (*self.shape[:at], size, *self.shape[at:])
    return new(shape, self.dtype, self.device, stride=(*inner[1 : at + 1], inner[0], *inner[at + 1 :]))
