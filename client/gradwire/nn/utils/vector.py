"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from gradwire_protocol.errors import ArgumentTypeError

from ..._core.context.modes import no_grad
from ..._core.dispatch.dispatch import call
from ..._core.tensor.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters one after the other, as a vector that gradients flow through."""
    return call("cat", [call("reshape", p, (-1,)) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let parameters show consecutive parts of a vector, whose memory they share from then on."""
    if not isinstance(vec, Tensor):
        raise ArgumentTypeError(f"the vector is a tensor, not {type(vec).__name__}")
    start = 0
    with no_grad():
        for param in parameters:
            shape = tuple(param.shape)
            count = prod(shape)
            param.data = call("view", call("narrow", vec, 0, start, count), shape)
            start += count
