"""Losses that are minus the logarithm of a distribution's density: Poisson, normal, and the labelling of a sequence."""

from __future__ import annotations

from typing import Final

from ..autocast import CPU_FLOAT32, FLOAT32
from ..costs import Cost, last, numel
from ..dtypes import FLOATING, float32, float64
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, meta, new
from ..promotion import Promote
from ..shapes import common_device, elementwise
from ..table import Tensor, gradients, op
from .losses import need_reduction, reduced
from .matrix import fits

_REDUCED = {"mean": "MeanBackward0", "sum": "SumBackward0"}


@op(grad_fn="SubBackward0", exposed=("nn.functional",), autocast=FLOAT32)
@gradients(self="opaque", target="opaque(self) if not full else opaque", saves="self target")
def poisson_nll_loss(
    self: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
    reduction: str = "mean",
) -> Inference:  # fmt: skip
    """Minus the log-probability of counts ``target`` under Poisson distributions whose rates ``self`` predicts.

    ``exp(self) - target * self`` where ``self`` is the rate's logarithm (``log_input``), else
    ``self - target * log(self + eps)``; with broadcasting and promotion, then reduced. ``full`` adds Stirling's
    approximation of ``log(target!)`` for targets above 1.
    """
    need_reduction(reduction)
    node = _REDUCED.get(reduction) or ("AddBackward0" if full else "SubBackward0")
    return reduced(_poisson_elements(self, target, log_input), reduction, node)


def _poisson_elements(self: Meta, target: Meta, log_input: bool) -> Inference:
    """The difference of two terms. The product is promoted by itself: a 0-dim target beside integers decides there."""
    if log_input:
        rates, product = elementwise(self, promotion=Promote.INT_TO_FLOAT), elementwise(target, self)
        return elementwise(rates.outs[0], product.outs[0])
    product = elementwise(target, elementwise(self, promotion=Promote.INT_TO_FLOAT).outs[0])
    return elementwise(self, product.outs[0])


@op(grad_fn="MulBackward0", exposed=("nn.functional",))
@gradients("opaque", saves="result1")
def gaussian_nll_loss(
    self: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Inference:
    """Minus the log-density of ``target`` under normal distributions with means ``self`` and variances ``var``.

    ``0.5 * (log(v) + (self - target) ** 2 / v)`` with ``v = max(var, eps)``, whose bound gradients ignore; with
    broadcasting and promotion, then reduced. ``var`` has the shape of ``self``, or lacks its last dimension, or has
    the extent 1 in one dimension. A negative variance raises ValueError. ``full`` adds the constant
    ``0.5 * log(2 * pi)``.
    """
    need_reduction(reduction)
    name = "gaussian_nll_loss"
    if not var.dtype.is_floating_point:
        raise DTypeError(f"{name}: variances are floating point, not {var.dtype.name}")
    if variance_shape(self.shape, var.shape) != var.shape:
        var = meta((*var.shape, 1), var.dtype, var.device, (*var.stride, 1))
    elements = elementwise(elementwise(var).outs[0], elementwise(self, target).outs[0])
    node = _REDUCED.get(reduction) or ("AddBackward0" if full else "MulBackward0")
    return reduced(elements, reduction, node)


def variance_shape(shape: Shape, given: Shape) -> Shape:
    """The shape in which a variance joins predictions of ``shape``.

    Raises:
        ArgumentValueError: when it is neither one variance per prediction nor one per row of them.
    """
    if given == shape:
        return given
    if given == shape[:-1]:
        return (*given, 1)
    differing = [m for n, m in zip(shape, given, strict=False) if n != m]
    if len(given) != len(shape) or differing != [1]:
        raise ArgumentValueError(
            f"gaussian_nll_loss: a variance of shape {list(given)} does not match an input of shape {list(shape)}: "
            "it has the same shape, or lacks the last dimension, or has the extent 1 in one"
        )
    return given


@op(grad_fn="CloneBackward0", internal=True, elementwise=True, total=False)
@gradients("grad")
def bounded_variance(self: Tensor, eps: float) -> Inference:
    """``max(self, eps)``, whose gradient is that of ``self``; a negative one raises ValueError."""
    return elementwise(self)


# Connectionist temporal classification


@op(
    grad_fn="CtcLossBackward0", differentiable=("self",), exposed=("nn.functional",),
    cost=Cost(lambda c: 4 * numel(c.self) // max(last(c.self), 1) * alignment_states(c.self.shape[0], last(c.targets))),
    autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients("ctc_loss_gradient(grad, result1)", saves="result1")
def ctc_loss(
    self: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Inference:  # fmt: skip
    """Minus the log-probability of sequences of labels, summed over all ways to align them with the input.

    Args:
        self: log-probabilities ``(T, N, C)`` of C labels at T times, or ``(T, C)`` without a batch.
        targets: labels, integers: ``(N, S)``, padded, or all of them one after the other in one dimension.
        input_lengths: so many of the T times count, ``(N,)`` or ``()``.
        target_lengths: so many labels each sequence has, ``(N,)`` or ``()``.
        blank: the label that stands for none.
        reduction: ``"mean"`` divides each loss by its number of labels (1 at least) first.
        zero_infinity: losses of sequences too long to be aligned are 0 rather than infinite, and so their gradients.

    A length or a label outside its range raises RuntimeError. Graves et al., "Connectionist Temporal Classification",
    ICML 2006.
    """
    name = "ctc_loss"
    need_reduction(reduction)
    if self.dtype not in (float32, float64):
        raise Unsupported(f"{name} is not defined on {self.dtype.name}, only on float32 and float64")
    if self.ndim not in (2, 3):
        raise ShapeError(f"{name}: log-probabilities have the shape (T, N, C) or (T, C), not {list(self.shape)}")
    batch = self.shape[1] if self.ndim == 3 else 1
    labels = self.shape[-1]
    if not 0 <= blank < labels:
        raise ArgumentError(f"{name}: blank is {blank}, outside of the {labels} labels")
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and not fits(targets.shape[0], batch)):
        raise ShapeError(f"{name}: targets of shape {list(targets.shape)} do not match a batch of {batch}")
    if not self.shape[0] or not batch:
        raise ShapeError(f"{name}: the input of shape {list(self.shape)} is empty")
    for what, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths.dtype.category >= FLOATING:
            raise DTypeError(f"{name}: {what} are integers, not {lengths.dtype.name}")
        if lengths.numel != batch:
            raise ShapeError(f"{name}: a batch of {batch} takes as many {what}, got {lengths.numel}")
    device = common_device(self, targets)
    shape = () if reduction != "none" or self.ndim == 2 else (batch,)
    # Backward needs the gradient for each sequence's loss, which the kernel finds on its way.
    kept = meta(self.shape, self.dtype, device)
    states = alignment_states(self.shape[0], targets.shape[-1])
    # Scores and paths of all states, in double precision, and which label each state of some sequences has.
    marks = 9 * min(batch * states * labels, max(LABELS_AT_ONCE, states * labels))
    scratch = 6 * self.shape[0] * batch * states * float64.itemsize + marks
    out = meta(shape, self.dtype, device)
    return Inference((out, kept), None, None, _ctc_node(self, reduction, zero_infinity), scratch)


@op(grad_fn="NotImplemented", internal=True, underivable="the gradient of ctc_loss has no derivative")
def ctc_loss_gradient(g: Tensor, each: Tensor) -> Inference:
    """The gradient by the log-probabilities: ``each``, of each sequence's loss, times ``g``, by these losses."""
    return new(each.shape, each.dtype, each.device, compute=each.dtype)


LABELS_AT_ONCE: Final = 1 << 20
"""Pairs of a state and a label that are held at once, if one sequence's are not more."""


def alignment_states(times: int, labels: int) -> int:
    """How many states an alignment of ``labels`` has, blanks between them; no more labels than times can be aligned."""
    return 2 * max(min(labels, times), 0) + 1


def _ctc_node(self: Meta, reduction: str, zero_infinity: bool) -> str | None:
    """What PyTorch applies last: the reduction, or the choice of zeros, or the view of a batch of one."""
    if reduction != "none":
        return _REDUCED[reduction]
    if self.ndim == 2:
        return "SqueezeBackward1"
    return "WhereBackward0" if zero_infinity else None
