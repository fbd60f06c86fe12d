"""Losses that ask for a margin: between the score of the right answer and the others, or between distances."""

from __future__ import annotations

from ..autocast import FLOAT32
from ..costs import ALL_PAIRS
from ..dtypes import FLOATING, DType, float32, float64, int64
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, meta, new
from ..promotion import Promote, join
from ..shapes import broadcast, common_device, elementwise
from ..table import Tensor, gradients, op
from .losses import need_reduction, reduced
from .matrix import fits

_REDUCED = {"mean": "MeanBackward0", "sum": "SumBackward0"}


@op(
    grad_fn="SoftMarginLossBackward0", differentiable=("self",), underived=("target",), exposed=("nn.functional",),
    autocast=FLOAT32,
)  # fmt: skip
@gradients("-(target * sigmoid(-(target * self))) * averaged(grad)")
def soft_margin_loss(self: Tensor, target: Tensor, reduction: str = "mean") -> Inference:
    """``log(1 + exp(-target * self))`` for targets 1 and -1, which broadcast to the input; then reduced."""
    need_reduction(reduction)
    if self.dtype.category != FLOATING:
        raise DTypeError(f"soft_margin_loss needs a floating point input, got {self.dtype.name}")
    elements = elementwise(self, target, dtype=self.dtype)
    if target.dtype.is_complex:
        raise DTypeError(f"soft_margin_loss: a {target.dtype.name} target makes no {self.dtype.name} losses")
    if elements.outs[0].shape != self.shape:
        raise ShapeError(
            f"soft_margin_loss: a target of shape {list(target.shape)} does not broadcast to the input's, "
            f"{list(self.shape)}"
        )
    return reduced(elements, reduction)


@op(grad_fn="AddBackward0", differentiable=("self",), exposed=("nn.functional",), autocast=FLOAT32)
@gradients("opaque()", saves="result1")
def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Inference:
    """A distance itself where the target is 1, ``max(0, margin - self)`` where it is -1; with broadcasting, then
    reduced."""
    need_reduction(reduction)
    if self.dtype.category < FLOATING:
        raise DTypeError(f"hinge_embedding_loss needs a floating point input, got {self.dtype.name}")
    return reduced(elementwise(target, self, dtype=self.dtype), reduction, _REDUCED.get(reduction))


def _with_float(*operands: Meta) -> DType:
    """The dtype of a sum of tensors and a float."""
    return elementwise(*[meta((), o.dtype, "cpu") for o in operands], promotion=Promote.INT_TO_FLOAT).outs[0].dtype


@op(grad_fn="ClampMinBackward0", exposed=("nn.functional",), autocast=FLOAT32)
@gradients(input1="(s := opaque(target))", input2="s", target="opaque(input1, input2)", saves="result1")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Inference:
    """``max(0, -target * (input1 - input2) + margin)``: with a target of 1 the first input should be the larger, with
    -1 the second. All have as many dimensions; with broadcasting, then reduced."""
    need_reduction(reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        listed = ", ".join(str(list(o.shape)) for o in (input1, input2, target))
        raise ShapeError(f"margin_ranking_loss takes tensors with as many dimensions each; their shapes are {listed}")
    difference = elementwise(input1, input2).outs[0]
    elements = elementwise(target, difference, promotion=Promote.INT_TO_FLOAT)
    return reduced(elements, reduction, _REDUCED.get(reduction))


@op(grad_fn="AddBackward0", differentiable=("input1", "input2"), exposed=("nn.functional",), autocast=FLOAT32)
@gradients("opaque", saves="input1 input2")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Inference:
    """``1 - cos`` of the angle between two vectors where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Inputs are ``(N, D)`` with a target ``(N,)``, or ``(D,)`` with a target ``()``; the losses are then reduced.
    """
    need_reduction(reduction)
    name = "cosine_embedding_loss"
    if target.ndim > 1:
        raise ShapeError(f"{name}: the target has at most one dimension; its shape is {list(target.shape)}")
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise ShapeError(
            f"{name}: inputs of shapes {list(input1.shape)} and {list(input2.shape)} do not match a target of shape "
            f"{list(target.shape)}, which has one dimension less"
        )
    shape = broadcast(broadcast(input1.shape, input2.shape)[:-1], target.shape)
    dtype = _with_float(input1, input2)
    elements = new(shape, dtype, common_device(input1, input2, target))
    return reduced(elements, reduction, _REDUCED.get(reduction))


@op(grad_fn="ClampMinBackward0", exposed=("nn.functional",), autocast=FLOAT32)
@gradients(
    anchor="opaque",
    positive="opaque(anchor, positive) if not swap else opaque",
    negative="opaque(anchor, negative) if not swap else opaque",
    saves="result1",
)
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Inference:  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, then reduced.

    ``d`` is the p-norm of differences along the last dimension, to each of which ``eps`` is added. With ``swap`` the
    negative's distance is the smaller of those from the anchor and from the positive.
    """
    need_reduction(reduction)
    operands = (anchor, positive, negative)
    if not anchor.ndim == positive.ndim == negative.ndim:
        listed = ", ".join(str(list(o.shape)) for o in operands)
        raise ShapeError(f"triplet_margin_loss takes tensors with as many dimensions each; their shapes are {listed}")
    if margin <= 0:
        raise ArgumentValueError(f"triplet_margin_loss: margin must be positive, got {margin}")
    near, far = broadcast(anchor.shape, positive.shape), broadcast(anchor.shape, negative.shape)
    shapes = [near[:-1], far[:-1]]
    if swap:
        shapes.append(broadcast(positive.shape, negative.shape)[:-1])
    dtype = _with_float(*operands)
    real = {"complex64": float32, "complex128": float64}.get(dtype.name, dtype)
    return reduced(new(broadcast(*shapes), real, common_device(*operands)), reduction, _REDUCED.get(reduction))


# Several classes: scores are (N, C), or (C) for one sample.


def _need_rows(name: str, self: Meta) -> tuple[int, int]:
    """The numbers of samples and classes."""
    if self.dtype not in (float32, float64):
        raise Unsupported(f"{name} is not defined on {self.dtype.name}, only on float32 and float64")
    if self.ndim > 2 or 0 in self.shape[-1:]:
        raise ShapeError(f"{name}: scores have the shape (N, C) or (C) with at least one class, not {list(self.shape)}")
    return (self.shape[0] if self.ndim == 2 else 1), (self.shape[-1] if self.ndim else 1)


@op(
    grad_fn="MultiMarginLossBackward0", differentiable=("self",), underived=("weight",), exposed=("nn.functional",),
    autocast=FLOAT32,
)  # fmt: skip
@gradients(
    "reshape((t := (c if p == 1 else where((c - sum_dim(reshape(self) * c) + reshape(self)) * c, c))"
    " * (s := reshape(grad) * c)) - c * sum_dim(t)) if weight is None"
    " else reshape((u := c * (s * unsqueeze(index_select(weight)))) - c * sum_dim(u)) if p == 1"
    " else reshape(grad, self, weight)",
    saves="self target weight",
)
def multi_margin_loss(
    self: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean"
) -> Inference:
    """``sum(max(0, margin - self[target] + self[i]) ** p for i != target) / C``, times the target's weight; reduced.

    Scores are ``(N, C)`` with classes ``(N,)``, or ``(C,)`` with one class. ``p`` is 1 or 2. A class outside the
    scores raises RuntimeError.
    """
    name = "multi_margin_loss"
    need_reduction(reduction)
    if p not in (1, 2):
        raise ArgumentValueError(f"{name}: p must be 1 or 2, not {p}")
    if weight is not None and weight.ndim != 1:
        raise ArgumentValueError(f"{name}: the weight has one dimension; its shape is {list(weight.shape)}")
    samples, classes = _need_rows(name, self)
    if target.ndim > 1 or not fits(target.numel, samples):
        raise ShapeError(f"{name}: {samples} samples take a target of as many classes, got {list(target.shape)}")
    if target.dtype is not int64:
        raise DTypeError(f"{name}: classes are int64, not {target.dtype.name}")
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(f"{name}: {classes} classes take a weight of shape {[classes]}, got {list(weight.shape)}")
    if weight is not None and weight.dtype is not self.dtype:
        raise DTypeError(f"{name}: the weight is {weight.dtype.name}, the input {self.dtype.name}")
    shape = () if reduction != "none" else (samples,) if self.ndim == 2 else target.shape
    return new(shape, self.dtype, common_device(self, target, weight))


def _need_label_lists(name: str, self: Meta, target: Meta) -> tuple[int, int]:
    rows = _need_rows(name, self)
    if target.ndim > 2 or target.shape != self.shape:
        raise ShapeError(f"{name}: a target of shape {list(target.shape)} does not match scores {list(self.shape)}")
    if target.dtype is not int64:
        raise DTypeError(f"{name}: labels are int64, not {target.dtype.name}")
    return rows


@op(
    grad_fn="MultilabelMarginLossBackward0", differentiable=("self",), exposed=("nn.functional",), cost=ALL_PAIRS,
    autocast=FLOAT32,
)  # fmt: skip
@gradients(
    "c * ((unsqueeze(grad) if reduction == 'none' else averaged(grad)) if self.ndim == 2 else grad)",
    saves="self target",
)
def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: str = "mean") -> Inference:
    """``sum(max(0, 1 - self[j] + self[i])) / C`` over a sample's labels ``j`` and all other classes ``i``; reduced.

    Scores and target are ``(N, C)`` or ``(C,)``. Each row of the target holds a sample's labels, up to the first -1.
    A label outside the scores raises RuntimeError.
    """
    need_reduction(reduction)
    samples, _ = _need_label_lists("multilabel_margin_loss", self, target)
    shape: Shape = (samples,) if reduction == "none" and self.ndim == 2 else ()
    return new(shape, self.dtype, common_device(self, target))


@op(internal=True, cost=ALL_PAIRS)
def multilabel_margin_slopes(self: Tensor, target: Tensor) -> Inference:
    """The slope of each sample's :func:`multilabel_margin_loss` by each of its scores."""
    _need_label_lists("multilabel_margin_slopes", self, target)
    return new(self.shape, self.dtype, self.device)


@op(grad_fn="DivBackward0", exposed=("nn.functional",))
@gradients(self="opaque", target="opaque(self, weight)", weight="opaque(self, target)", saves="self target weight")
def multilabel_soft_margin_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Inference:
    """The binary cross entropy of scores ``(..., C)`` with targets 0 and 1, times a weight for each class, averaged
    over classes; then reduced."""
    need_reduction(reduction)
    operands = [o for o in (self, target, weight) if o is not None]
    elements = elementwise(*operands)
    if not self.dtype.is_floating_point:
        raise Unsupported(f"multilabel_soft_margin_loss is not defined on {self.dtype.name}")
    shape = elements.outs[0].shape
    if not self.ndim:
        raise ArgumentError("multilabel_soft_margin_loss: scores have at least one dimension, of classes")
    rows = new(shape[:-1], join(self.dtype, target.dtype), common_device(*operands))
    if weight is not None:
        rows = new(shape[:-1], elements.outs[0].dtype, common_device(*operands))
    return reduced(rows, reduction, _REDUCED.get(reduction))
