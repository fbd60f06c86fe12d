"""Bags: rows of a table looked up several at a time and reduced to one; and tables whose rows are kept short."""

from __future__ import annotations

from ..dtypes import int32, int64
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import UNKNOWN, Inference, Meta, new, nothing, several
from ..shapes import common_device
from ..table import Float, Tensor, gradients, op

BAG_MODES = ("sum", "mean", "max")


def _need_integers(name: str, **operands: Meta) -> None:
    for label, operand in operands.items():
        if operand.dtype not in (int32, int64):
            raise DTypeError(f"{name}: {label} are int64 or int32, not {operand.dtype.name}")
        if operand.ndim != 1:
            raise ShapeError(f"{name}: {label} are a vector, their shape is {list(operand.shape)}")


@op(results=4, grad_fn="EmbeddingBagBackward0", differentiable=("weight", "per_sample_weights"), exposed=())
@gradients(
    weight=(
        "scatter_add(c, grad * c) if mode == 'max' else embedding_backward(index_select(grad"
        " / unsqueeze(clamp_min(to(c), c))) if mode == 'mean' else (s := index_select(grad))"
        " if per_sample_weights is None else s * unsqueeze(per_sample_weights))"
    ),
    per_sample_weights="sum_dim(s * index_select(weight)) * c",
    saves={
        "weight": "indices offsets per_sample_weights result1 result2 result3",
        "per_sample_weights": "weight indices offsets result1",
    },
)
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, mode: str = "mean", scale_grad_by_freq: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> Inference:  # fmt: skip
    """The rows of a table ``(rows, columns)`` that integers name, reduced bag by bag: ``(bags, columns)``.

    ``indices`` is a vector of all bags' integers, ``offsets`` says where in it each bag begins (with
    ``include_last_offset`` also where the last one ends). ``mode`` is ``"sum"``, ``"mean"`` or ``"max"``; an empty
    bag gives zeros. ``per_sample_weights`` are factors of the rows of a sum. The row ``padding_idx`` (-1: none) counts
    nothing; ``scale_grad_by_freq`` divides each row's gradient by the number of times it was named. Also returned are
    each integer's bag, each bag's size without padding, and for ``"max"`` the row that each element comes from.

    An index outside the table raises RuntimeError when the result is read, and so do offsets that do not begin with 0.
    """
    name = "embedding_bag"
    if weight.ndim != 2:
        raise ShapeError(f"{name}: the table must be a matrix; its shape is {list(weight.shape)}")
    _need_integers(name, indices=indices, offsets=offsets)
    if not weight.dtype.is_floating_point:
        raise Unsupported(f"{name} is not defined on {weight.dtype.name}")
    if mode not in BAG_MODES:
        raise ArgumentError(f"{name}: mode must be 'sum', 'mean' or 'max', not {mode!r}")
    if per_sample_weights is not None:
        if mode != "sum":
            raise ArgumentError(f"{name}: per_sample_weights require mode 'sum', not {mode!r}")
        if per_sample_weights.shape != indices.shape:
            raise ShapeError(
                f"{name}: {list(indices.shape)} indices have per_sample_weights of {list(per_sample_weights.shape)}"
            )
        if per_sample_weights.dtype is not weight.dtype:
            raise DTypeError(
                f"{name}: per_sample_weights are {per_sample_weights.dtype.name}, the table is {weight.dtype.name}"
            )
    if include_last_offset and offsets.shape[0] == 0:
        raise ArgumentError(f"{name}: with include_last_offset there is at least one offset")
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows and rows != UNKNOWN and padding_idx != -1:
        raise ArgumentError(f"{name}: padding_idx {padding_idx} is outside a table of {rows} rows")
    device = common_device(weight, indices, offsets, per_sample_weights)
    bags = offsets.shape[0] - include_last_offset
    found = several(
        new((bags, weight.shape[1]), weight.dtype, device, compute=None),
        new(indices.shape, int64, device),
        new((bags,), int64, device),
        new((bags, weight.shape[1] if mode == "max" else 0), int64, device),
    )
    found.scratch = 3 * max(indices.numel, 0) * weight.shape[1] * 8
    return found


@op(mutates=0, results=0, exposed=("function",), copied=("indices",))
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: Float, norm_type: Float = 2.0) -> Inference:
    """Shorten the rows of a table that integers name, where their ``norm_type``-norm is above ``max_norm``, to that
    length, in place."""
    if self.ndim != 2:
        raise ShapeError(f"embedding_renorm_: the table must be a matrix; its shape is {list(self.shape)}")
    if not self.dtype.is_floating_point:
        raise DTypeError(f"embedding_renorm_: the table must be floating point, it is {self.dtype.name}")
    if indices.dtype not in (int32, int64):
        raise DTypeError(f"embedding_renorm_: indices are int64 or int32, not {indices.dtype.name}")
    common_device(self, indices)
    return nothing()
