"""Losses: one number, or one per sample, that says how far predictions are from targets."""

from __future__ import annotations

from math import prod

from ..autocast import CPU_FLOAT32, FLOAT32, GPU_REFUSED
from ..dtypes import BOOLEAN, FLOATING, DType, float32, int64, uint8
from ..errors import ArgumentError, ArgumentValueError, DTypeError, IndexOutOfRange, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, meta, new
from ..promotion import Promote
from ..shapes import common_device, elementwise
from ..table import Tensor, gradients, op
from .matrix import fits

REDUCTIONS = ("none", "mean", "sum")


def need_reduction(reduction: str, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    if reduction not in allowed:
        raise ArgumentValueError(f"reduction must be one of {', '.join(map(repr, allowed))}, not {reduction!r}")


# Elementwise losses


def reduced(elements: Inference, reduction: str, node: str | None = None) -> Inference:
    """The rule of an elementwise loss, from that of its elements."""
    need_reduction(reduction)
    out = elements.outs[0]
    if reduction == "none":
        return elements.named(node) if node else elements
    return new((), out.dtype, out.device, compute=elements.compute, grad_fn=node)


def need_float(name: str, elements: Inference) -> None:
    dtype = elements.outs[0].dtype
    if dtype.category != FLOATING:
        raise Unsupported(f"{name} is not defined on {dtype.name}")


@op(grad_fn="MseLossBackward0", exposed=("nn.functional",), autocast=FLOAT32)
@gradients(
    self="(s := (self - target) * (averaged(grad) * 2))", target="-s", saves="self target", broadcasts=("target",)
)
def mse_loss(self: Tensor, target: Tensor, reduction: str = "mean") -> Inference:
    """The squared difference from the target, elementwise with broadcasting and promotion, then reduced (``"none"``,
    ``"mean"`` or ``"sum"``). Floating point only."""
    elements = elementwise(self, target)
    need_float("mse_loss", elements)
    return reduced(elements, reduction)


def _refuse_bool(name: str, *operands: Meta) -> None:
    if any(operand.dtype.category == BOOLEAN for operand in operands):
        raise DTypeError(f"{name}: subtraction is not defined for bools; cast them first")


@op(grad_fn="AbsBackward0", exposed=("nn.functional",), autocast=FLOAT32)
@gradients("opaque", saves="result1")
def l1_loss(self: Tensor, target: Tensor, reduction: str = "mean") -> Inference:
    """The absolute difference from the target, elementwise with broadcasting and promotion, then reduced."""
    elements = elementwise(self, target, promotion=Promote.COMPLEX_TO_FLOAT)
    _refuse_bool("l1_loss", self, target)
    if reduction == "mean" and elements.outs[0].dtype.category < FLOATING:
        raise DTypeError("l1_loss: the mean is not defined for integers; cast them, or use another reduction")
    return reduced(elements, reduction, _PLAIN.get(reduction))


_PLAIN = {"mean": "MeanBackward0", "sum": "SumBackward0", "none": "AbsBackward0"}


@op(grad_fn="SmoothL1LossBackward0", exposed=("nn.functional",), autocast=FLOAT32)
@gradients(
    self="(s := (sgn(self - target) if beta == 0 else clamp((self - target) / c, c, c)) * averaged(grad))",
    target="-s",
    saves="self target",
    broadcasts=("target",),
)
def smooth_l1_loss(self: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Inference:
    """``0.5 * d ** 2 / beta`` where the difference ``d`` is below ``beta``, ``abs(d) - 0.5 * beta`` elsewhere; then
    reduced. With ``beta`` 0 it is :func:`l1_loss`."""
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    elements = elementwise(self, target)
    if beta == 0:
        _refuse_bool("smooth_l1_loss", self, target)
        return reduced(elements, reduction, _PLAIN.get(reduction))
    need_float("smooth_l1_loss", elements)
    return reduced(elements, reduction)


@op(grad_fn="HuberLossBackward0", exposed=("nn.functional",), autocast=CPU_FLOAT32)
@gradients(
    self="(s := clamp(self - target, c, c) * averaged(grad))", target="-s", saves="self target", broadcasts=("target",)
)
def huber_loss(self: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Inference:
    """``0.5 * d ** 2`` where the difference ``d`` is below ``delta``, ``delta * (abs(d) - 0.5 * delta)`` elsewhere;
    then reduced. The result has the dtype of ``self``."""
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta must be positive, got {delta}")
    elements = elementwise(self, target, dtype=self.dtype)
    if self.dtype.category < FLOATING <= target.dtype.category:
        raise DTypeError(f"huber_loss: the result would be {self.dtype.name} like the input; cast that to a float")
    need_float("huber_loss", elements)
    return reduced(elements, reduction)


def _need_same_shape(name: str, self: Meta, target: Meta) -> None:
    if self.ndim != target.ndim or not all(fits(n, m) for n, m in zip(self.shape, target.shape, strict=True)):
        raise ArgumentValueError(
            f"{name}: the target's shape {list(target.shape)} is not the input's, {list(self.shape)}"
        )


@op(
    grad_fn="BinaryCrossEntropyBackward0", differentiable=("self", "target"), underived=("weight",),
    exposed=("nn.functional",), autocast=GPU_REFUSED,
)  # fmt: skip
@gradients(
    self=(
        "(t := (s := averaged(grad)) if weight is None else s * weight) * (self - target) / clamp_min((c"
        " - self) * self, c)"
    ),
    target="t * clamp(log1p(-self) - log(self), c, c)",
    saves="self target weight",
)
def binary_cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Inference:
    """``-(target * log(self) + (1 - target) * log(1 - self))``, times ``weight``, then reduced.

    The input holds probabilities; one outside [0, 1] raises RuntimeError. Logarithms are cut at -100.
    """
    _need_same_shape("binary_cross_entropy", self, target)
    if target.dtype is not self.dtype:
        raise DTypeError(f"binary_cross_entropy: the target is {target.dtype.name}, the input {self.dtype.name}")
    elements = elementwise(self, target)
    need_float("binary_cross_entropy", elements)
    if weight is not None:
        _need_weight("binary_cross_entropy", weight, self.shape)
    return reduced(elements, reduction)


def _need_weight(name: str, weight: Meta, shape: Shape) -> None:
    lead = len(shape) - weight.ndim
    if lead < 0 or any(n != 1 and not fits(n, shape[lead + i]) for i, n in enumerate(weight.shape)):
        raise ShapeError(f"{name}: a weight of shape {list(weight.shape)} does not broadcast to {list(shape)}")


@op(
    grad_fn="BinaryCrossEntropyWithLogitsBackward0", differentiable=("self", "target"),
    underived=("weight", "pos_weight"), exposed=("nn.functional",), autocast=FLOAT32,
)  # fmt: skip
@gradients(
    self=(
        "(t := (s := averaged(grad)) if weight is None else s * weight) * (sigmoid(self) - target"
        " if pos_weight is None else ((u := target * pos_weight) + 1 - target) * sigmoid(self) - u)"
    ),
    target="-(t * self) if pos_weight is None else t * ((pos_weight - 1) * softplus(-self) - self)",
    saves="self target weight pos_weight",
)
def binary_cross_entropy_with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Inference:  # fmt: skip
    """:func:`binary_cross_entropy` of ``sigmoid(self)``, computed without overflow; ``pos_weight`` multiplies the term
    of the positive class. Input and target are floating point; the result has the target's dtype."""
    name = "binary_cross_entropy_with_logits"
    _need_same_shape(name, self, target)
    if target.dtype.category < FLOATING:
        raise DTypeError(f"{name}: the target must be floating point, got {target.dtype.name}")
    factors = [w for w in (weight, pos_weight) if w is not None]
    for factor in factors:
        _need_weight(name, factor, self.shape)
    if self.dtype.category != FLOATING:
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")
    elements = elementwise(target, self, *factors, dtype=target.dtype)
    need_float(name, elements)
    return reduced(elements, reduction)


@op(grad_fn="SubBackward0", exposed=("nn.functional",), autocast=FLOAT32)
@gradients(
    self=(
        "expand(-((target if not log_target else exp(target)) * (s := grad / c if reduction == 'batchmean'"
        " else averaged(grad))))"
    ),
    target="s * (log(target) + 1 - self) if not log_target else s * exp(target) * (target - self + 1)",
    saves="self target",
    broadcasts=("self", "target"),
)
def kl_div(self: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Inference:
    """The divergence of distributions: ``target * (log(target) - self)`` for log-probabilities ``self``, with
    broadcasting and promotion. With ``log_target`` the target holds log-probabilities, too. The reduction
    ``"batchmean"`` divides the sum by the first extent."""
    need_reduction(reduction, (*REDUCTIONS, "batchmean"))
    if self.dtype.category < FLOATING or target.dtype.category < FLOATING:
        raise DTypeError(f"kl_div needs floating point tensors, got {self.dtype.name} and {target.dtype.name}")
    elements = elementwise(target, self)
    need_float("kl_div", elements)
    if reduction == "batchmean":
        return reduced(elements, "sum", "DivBackward0" if self.ndim else "SumBackward0")
    node = _PLAIN[reduction]
    return reduced(elements, reduction, node if reduction != "none" else "MulBackward0" if log_target else None)


# Classes: scores are (C), (N, C) or (N, C, d1, ...), a target of class indices lacks the dimension of classes.


def class_dim(self: Meta) -> int:
    """The dimension of classes."""
    return 1 if self.ndim > 1 else 0


def _need_scores(name: str, self: Meta, kind: type[Exception]) -> DType:
    """The dtype that the scores are computed in."""
    if self.ndim == 0:
        raise kind(f"{name}: the input must have at least 1 dimension")
    if not self.dtype.is_floating_point:
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")
    return float32 if self.dtype.is_low_precision else self.dtype


def _need_classes(name: str, self: Meta, target: Meta) -> Shape:
    """Check a target of class indices; the shape of one loss per sample."""
    shape = (self.shape[0], *self.shape[2:]) if self.ndim > 1 else ()
    if self.ndim > 1 and target.ndim and not fits(self.shape[0], target.shape[0]):
        raise ArgumentValueError(
            f"{name}: {self.shape[0]} samples of shape {list(self.shape)} do not match a target of {list(target.shape)}"
        )
    single = self.ndim == 1 and target.shape == (1,)
    alike = len(shape) == target.ndim and all(fits(n, m) for n, m in zip(shape, target.shape, strict=True))
    if not single and not alike:
        raise ShapeError(
            f"{name}: an input of shape {list(self.shape)} takes a target of shape {list(shape)}, got "
            f"{list(target.shape)}"
        )
    if target.dtype not in (int64, uint8):
        raise DTypeError(f"{name}: class indices are int64 or uint8, got {target.dtype.name}")
    return shape


def _need_class_weight(name: str, self: Meta, weight: Meta | None) -> None:
    if weight is None:
        return
    classes = self.shape[class_dim(self)]
    if weight.ndim != 1 or not fits(weight.shape[0], classes):
        raise ShapeError(f"{name}: {classes} classes take a weight of shape {[classes]}, got {list(weight.shape)}")
    if weight.dtype is not self.dtype:
        raise DTypeError(f"{name}: the weight is {weight.dtype.name}, the input {self.dtype.name}")


def _likelihood_node(self: Meta, reduction: str) -> str:
    """PyTorch brings inputs of one or of three and more spatial dimensions to two."""
    if self.ndim <= 2:
        return "NllLossBackward0"
    return "ViewBackward0" if reduction == "none" and self.ndim != 4 else "NllLoss2DBackward0"


@op(
    grad_fn="NllLossBackward0", differentiable=("self",), underived=("weight",), exposed=("nn.functional",),
    autocast=FLOAT32,
)  # fmt: skip
@gradients("-((unsqueeze(grad) if reduction == 'none' and self.ndim > 1 else grad) * c)", saves="target weight")
def nll_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Inference:
    """Minus the log-probability of each sample's class.

    Log-probabilities are ``(C,)``, ``(N, C)`` or ``(N, C, d1, ...)``, the target holds class indices and lacks the
    dimension of classes. ``weight`` has one factor per class; the mean is weighted by it. Samples whose class is
    ``ignore_index`` do not count. An index outside the classes raises IndexError.
    """
    need_reduction(reduction)
    _need_scores("nll_loss", self, ArgumentValueError)
    shape = _need_classes("nll_loss", self, target)
    _need_class_weight("nll_loss", self, weight)
    device = common_device(self, target, weight)
    result = new(shape if reduction == "none" else (), self.dtype, device)
    return result.named(_likelihood_node(self, reduction))


@op(
    grad_fn="NllLossBackward0", differentiable=("self", "target"), underived=("weight",), exposed=("nn.functional",),
    autocast=FLOAT32,
)  # fmt: skip
@gradients(
    self=(
        "(s := grad1 + -((g := unsqueeze(grad) if reduction == 'none' and self.ndim > 1 else grad) * (c"
        " if not carries_gradient(target) else (m := target if label_smoothing == 0"
        " else target * c + c) * (w := reshape(weight) / c) if weight is not None else m * c"
        " if reduction == 'mean' and self.ndim > 1 else m))) - exp(result1) * sum_dim(s)"
    ),
    target=(
        "(t := (l := -(g * result1)) * w if weight is not None else l * c"
        " if reduction == 'mean' and self.ndim > 1 else l) if label_smoothing == 0 else t * c"
    ),
    saves="target weight result1",
)
def cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Inference:  # fmt: skip
    """:func:`nll_loss` of the log-softmax of scores.

    The target holds class indices, or, with the shape and a dtype like the scores', class probabilities, to which
    gradients flow. ``label_smoothing`` mixes that share of the uniform distribution into the target.
    """
    name = "cross_entropy"
    need_reduction(reduction)
    statistics = _need_scores(name, self, IndexOutOfRange)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"{name}: label_smoothing must be from 0 to 1, got {label_smoothing}")
    device = common_device(self, target, weight)
    _need_class_weight(name, self, weight)
    if is_distribution(self, target):
        if ignore_index >= 0:
            raise ArgumentError(f"{name}: ignore_index={ignore_index} does not apply to a target of probabilities")
        shape = tuple(n for i, n in enumerate(self.shape) if i != class_dim(self))
        node = "DivBackward1" if reduction == "mean" else "NegBackward0"
        dtype = elementwise(self, target).outs[0].dtype
    else:
        shape = _need_classes(name, self, target)
        node = "AddBackward0" if label_smoothing else _likelihood_node(self, reduction)
        dtype = self.dtype
    # The logarithms are kept for backward, as a second result that no caller sees.
    out = meta(shape if reduction == "none" else (), dtype, device)
    return Inference((out, meta(self.shape, statistics, device)), None, None, node)


def is_distribution(self: Meta, target: Meta) -> bool:
    """Whether a target holds class probabilities rather than indices."""
    return target.shape == self.shape and target.dtype.is_floating_point


@op(internal=True)
def class_weights(
    target: Tensor, weight: Tensor | None, shape: tuple[int, ...], ignore_index: int, mean: bool,
    label_smoothing: float, dtype: DType,
) -> Inference:  # fmt: skip
    """The factors by which log-probabilities of ``shape`` are multiplied, and subtracted, to give a loss for these
    class indices: most of them are 0. With ``mean`` they include the division."""
    self = meta(shape, dtype, target.device)
    _need_scores("class_weights", self, ArgumentError)
    _need_classes("class_weights", self, target)
    if weight is not None and weight.shape != (shape[class_dim(self)],):
        raise ShapeError(f"class_weights: a weight of shape {list(weight.shape)} does not match {list(shape)}")
    if prod(shape) < 0:
        raise ShapeError(f"class_weights: shape {list(shape)} has a negative extent")
    return new(shape, dtype, target.device)


@op(internal=True)
def cross_entropy_backward(
    grad: Tensor, log_probabilities: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, mean: bool,
    label_smoothing: float,
) -> Inference:  # fmt: skip
    """The gradient of :func:`cross_entropy` for its scores, for a target of class indices."""
    _need_classes("cross_entropy_backward", log_probabilities, target)
    return new(log_probabilities.shape, log_probabilities.dtype, log_probabilities.device)
