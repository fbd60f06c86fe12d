"""Sequences of different lengths in one tensor.

Padded, they are ``(time, batch, ...)``. Packed, they are ``(steps, ...)`` with ``batch_sizes``, the number of rows of
each time step: those of the sequences that are still going on. The longest comes first, so it never rises.
"""

from __future__ import annotations

from itertools import pairwise

from ..errors import ArgumentError, ShapeError
from ..meta import Inference, new
from ..shapes import common_device
from ..table import Factor, Float, Ints, Tensor, gradients, op


def check_sizes(name: str, batch_sizes: Ints) -> None:
    """Check that these can be the steps' numbers of rows.

    Raises:
        ArgumentError: listing them.
    """
    if not batch_sizes or batch_sizes[-1] < 1 or any(a < b for a, b in pairwise(batch_sizes)):
        raise ArgumentError(f"{name}: batch_sizes are positive and never rise, they are {list(batch_sizes)}")


@op(grad_fn="PackPaddedSequenceBackward0", exposed=())
@gradients("pad_packed(grad)")
def pack_padded(self: Tensor, batch_sizes: Ints) -> Inference:
    """The rows of ``(time, batch, ...)`` that are no padding, ``(steps, ...)``: of each time step the first so many as
    ``batch_sizes`` says, which never rise."""
    check_sizes("pack_padded", batch_sizes)
    if self.ndim < 2 or self.shape[0] < len(batch_sizes) or self.shape[1] != batch_sizes[0]:
        raise ShapeError(
            f"pack_padded: {len(batch_sizes)} steps of at most {batch_sizes[0]} rows do not fit {list(self.shape)}"
        )
    return new((sum(batch_sizes), *self.shape[2:]), self.dtype, self.device)


@op(grad_fn="PadPackedSequenceBackward0", exposed=(), differentiable=("self",))
@gradients("pack_padded(grad)")
def pad_packed(self: Tensor, batch_sizes: Ints, padding_value: Factor = 0, length: int | None = None) -> Inference:
    """The way back of :func:`pack_padded`, to ``length`` time steps, by default as many as there are; what was not
    packed is ``padding_value``."""
    check_sizes("pad_packed", batch_sizes)
    if self.ndim < 1 or self.shape[0] != sum(batch_sizes):
        raise ShapeError(f"pad_packed: batch_sizes add up to {sum(batch_sizes)}; the shape is {list(self.shape)}")
    if length is not None and length < len(batch_sizes):
        raise ShapeError(f"pad_packed: {len(batch_sizes)} steps do not fit a length of {length}")
    return new((length or len(batch_sizes), batch_sizes[0], *self.shape[1:]), self.dtype, self.device)


@op(grad_fn="PadSequenceBackward0", exposed=(), differentiable=("sequences",))
@gradients("narrow(select(grad))")
def pad_sequence(
    sequences: list[Tensor], batch_first: bool = False, padding_value: Float = 0, padding_side: str = "right"
) -> Inference:
    """Sequences ``(length, ...)`` of different lengths as one tensor ``(time, batch, ...)``, or with ``batch_first``
    ``(batch, time, ...)``, with ``padding_value`` after or, if ``padding_side`` is ``"left"``, before them."""
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"pad_sequence: padding_side must be 'left' or 'right', not {padding_side!r}")
    if not sequences:
        raise ArgumentError("pad_sequence needs at least one sequence")
    first = sequences[0]
    if not all(s.known for s in sequences) or any(s.ndim < 1 or s.shape[1:] != first.shape[1:] for s in sequences):
        listed = ", ".join(str(list(s.shape)) for s in sequences[:8])
        raise ShapeError(f"pad_sequence: sequences differ in their first extent only; their shapes are {listed}")
    longest, count = max(s.shape[0] for s in sequences), len(sequences)
    shape = (count, longest) if batch_first else (longest, count)
    return new((*shape, *first.shape[1:]), first.dtype, common_device(*sequences), compute=first.dtype)
