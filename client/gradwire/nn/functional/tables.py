"""Tables that are looked up by integers."""

from __future__ import annotations

import warnings

from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported

from ..._core.context.modes import no_grad
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import arange
from ..._core.tensor.tensor import Tensor

__all__ = ["embedding", "embedding_bag", "one_hot"]


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of a table that integers name: ``(...)`` and ``(rows, columns)`` give ``(..., columns)``.

    Args:
        padding_idx: a row that receives no gradient.
        max_norm: rows that are looked up and longer than this are shortened first, in the table itself.
        norm_type: the p of that length.
        scale_grad_by_freq: divide each row's gradient by the number of times it was looked up.
    """
    if sparse:
        raise Unsupported("embedding: sparse gradients are not supported by gradwire")
    row = _padding("embedding", weight, padding_idx)
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    return call("embedding", weight, input, row, scale_grad_by_freq)


def _padding(name: str, weight: Tensor, padding_idx: int | None) -> int:
    """The row that counts nothing, -1 for none."""
    if padding_idx is None:
        return -1
    rows: int = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"{name}: padding_idx {padding_idx} is outside a table of {rows} rows")
    return padding_idx % rows


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():  # detached: the rows' tangents stay as they are, though their values change
        call("embedding_renorm_", weight.detach(), input, float(max_norm), float(norm_type))


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Rows of a table ``(rows, columns)``, several at a time, reduced to one: ``(bags, columns)``.

    Args:
        input: ``(bags, size)``, or all bags' integers in one vector with ``offsets``.
        offsets: where in that vector each bag begins; with ``include_last_offset`` also where the last one ends.
        max_norm: rows that are looked up and longer than this are shortened first, in the table itself.
        norm_type: the p of that length.
        scale_grad_by_freq: divide each row's gradient by the number of times it was looked up.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        per_sample_weights: factors of the rows of a sum, in the shape of ``input``.
        padding_idx: a row that counts nothing and receives no gradient.

    Raises:
        ValueError: for arguments that do not fit each other.
    """
    if input.is_floating_point() and not weight.is_floating_point() and not weight.is_complex():
        warnings.warn(
            "embedding_bag takes the indices first, then the table: they were taken the other way round", stacklevel=2
        )
        input, weight = weight, input
    if per_sample_weights is not None and tuple(per_sample_weights.shape) != tuple(input.shape):
        raise ArgumentValueError(
            f"embedding_bag: per_sample_weights of shape {list(per_sample_weights.shape)} are not for integers of "
            f"{list(input.shape)}"
        )
    if weight.ndim != 2:
        raise ArgumentValueError(f"embedding_bag: a table is a matrix, its shape is {list(weight.shape)}")
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentValueError("embedding_bag: a matrix has a bag in each row, offsets are for a vector")
        offsets = arange(0, input.numel(), input.shape[1], dtype=input.dtype, device=input.device)
        input = call("reshape", input, (-1,))
        if per_sample_weights is not None:
            per_sample_weights = call("reshape", per_sample_weights, (-1,))
    elif input.ndim != 1:
        raise ArgumentValueError(f"embedding_bag takes a vector or a matrix, the shape is {list(input.shape)}")
    elif offsets is None or offsets.ndim != 1:
        raise ArgumentValueError("embedding_bag: a vector needs offsets, a vector of where each bag begins")
    if mode not in ("sum", "mean", "max"):
        raise ArgumentValueError(f"embedding_bag: mode is 'sum', 'mean' or 'max', not {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ArgumentValueError("embedding_bag: scale_grad_by_freq does not go with mode 'max'")
    if sparse:
        raise Unsupported("embedding_bag: sparse gradients are not supported by gradwire")
    if per_sample_weights is not None and mode != "sum":
        raise Unsupported(f"embedding_bag: per_sample_weights go with mode 'sum', not {mode!r}")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise ArgumentError(f"embedding_bag: padding_idx {padding_idx} is outside a table of {weight.shape[0]} rows")
    row = _padding("embedding_bag", weight, padding_idx)
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    return call(
        "embedding_bag", weight, input, offsets, mode, scale_grad_by_freq, per_sample_weights, include_last_offset, row
    )[0]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Each integer as a vector of ``num_classes`` elements with a 1 at its place.

    Without ``num_classes`` there are as many as the largest integer asks for, which costs a round trip.
    """
    if num_classes == -1:
        if not tensor.numel():
            raise ArgumentError("one_hot: without elements, num_classes must be given")
        num_classes = int(call("max", tensor).item()) + 1
    return call("one_hot", tensor, num_classes)
