"""Losses as modules: each is a function of :mod:`gradwire.nn.functional` with its options."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from gradwire_protocol.dtypes import DType, int64
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, ShapeError

from .._core.context.argument_types import Device
from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.tensor.tensor import Tensor
from . import functional as F
from .container import ModuleList, Sequential
from .functional.losses import current_spelling
from .linear import Linear


class _Loss(Module):
    """Two tensors in, one number out; or, with ``reduction="none"``, one number per element."""

    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        legacy = size_average is not None or reduce is not None
        self.reduction = current_spelling(size_average, reduce) if legacy else reduction


class _WeightedLoss(_Loss):
    """A loss with a weight per class or element, which is kept as a buffer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.weight: Tensor | None


class L1Loss(_Loss):
    """Absolute differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """``|input - target|``, reduced."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Squared differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """``(input - target) ** 2``, reduced."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared differences where they are below ``beta``, absolute ones above."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta: float = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, reduced."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """:class:`SmoothL1Loss` times ``delta``."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (int, float)):
            raise ArgumentTypeError(f"HuberLoss: delta is a number, not {type(delta).__name__}")
        self.delta: float = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, reduced."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of log-probabilities from probabilities (or, with ``log_target``, their logs)."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target: bool = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, reduced; ``reduction="batchmean"`` is the mathematical one."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of probabilities ``input``, reduced."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits; ``pos_weight`` weighs the positive answers."""

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", pos_weight: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of logits ``input``, reduced."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class NLLLoss(_WeightedLoss):
    """The negative log-probability of the right class: ``(N, C, ...)`` with classes ``(N, ...)``."""

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index: int = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of log-probabilities ``input``, reduced."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of logits ``(N, C, ...)`` with classes ``(N, ...)`` or class probabilities ``(N, C, ...)``."""

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index: int = ignore_index
        self.label_smoothing: float = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of logits ``input``, reduced."""
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class NLLLoss2d(NLLLoss):
    """PyTorch's former name of :class:`NLLLoss` for images."""

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        warnings.warn("NLLLoss2d is NLLLoss now", FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """Minus the log-probability of counts under Poisson distributions whose rates, or their logarithms, come in."""

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input: bool = log_input
        self.full: bool = full
        self.eps: float = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The loss of rates (or their logarithms) for counts, reduced."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Minus the log-density of targets under normal distributions whose means and variances come in."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full: bool = full
        self.eps: float = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """The loss of means ``input`` and variances ``var``, reduced."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(_Loss):
    """Minus the log-probability of sequences of labels, over all ways to align them with a longer input."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank: int = blank
        self.zero_infinity: bool = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        """The loss of log-probabilities ``(T, N, C)``, reduced."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))`` for targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores, reduced."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Distances themselves where the target is 1, what they lack to ``margin`` where it is -1."""

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin: float = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of distances, reduced."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """Which of two inputs should be the larger: the first for a target of 1, the second for -1."""

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin: float = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of two scores, reduced."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Whether two vectors should point the same way (a target of 1) or not (-1)."""

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin: float = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of vectors ``(N, D)`` with targets ``(N,)``, reduced."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """By how much other classes' scores come closer to the right one's than a margin."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ArgumentValueError(f"MultiMarginLoss: p is 1 or 2, not {p}")
        if weight is not None and weight.ndim != 1:
            raise ArgumentValueError(f"MultiMarginLoss: the weight has one dimension, not {weight.ndim}")
        self.p: int = p
        self.margin: float = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``(N, C)`` with classes ``(N,)``, reduced."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """:class:`MultiMarginLoss` for several right classes, named up to the first -1 of each row."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``(N, C)`` with labels ``(N, C)``, reduced."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of each class's score, averaged over classes."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``(N, C)`` with zeros and ones, reduced."""
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """A positive example should be closer to the anchor than a negative one, by a margin."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ArgumentValueError(f"TripletMarginLoss: margin must be positive, got {margin}")
        self.margin: float = margin
        self.p: float = p
        self.eps: float = eps
        self.swap: bool = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss of vectors ``(N, D)``, reduced."""
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` with any function of two tensors, a module perhaps, as the distance."""

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ArgumentValueError(f"TripletMarginWithDistanceLoss: margin must be positive, got {margin}")
        self.distance_function: Callable[[Tensor, Tensor], Tensor] = (
            F.pairwise_distance if distance_function is None else distance_function
        )
        self.margin: float = margin
        self.swap: bool = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss, reduced."""
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class LinearCrossEntropyOptions:
    """How PyTorch's :class:`LinearCrossEntropyLoss` saves memory; without effect on what is computed here."""

    def __init__(
        self, allow_retain_graph: bool = False, batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto", acc_policy: str = "auto", acc_dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.allow_retain_graph: bool = allow_retain_graph
        self.batch_chunk_size: int | None = batch_chunk_size
        self.chunking_method: str | None = chunking_method
        self.acc_policy: str = acc_policy
        self.acc_dtype: DType | None = acc_dtype

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of the scores it gives: ``(N, in_features)`` with classes ``(N, ...)``.

    Args:
        num_classes: the number of classes.
        out_features: further dimensions of the scores, ``(N, num_classes, *out_features)``.
        bias: whether the layer adds a bias.
        weight: a weight for each class; the layer's own is ``linear.weight``.
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Device = None, dtype: DType | None = None, reduction: str = "mean", weight: Tensor | None = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weight, reduction=reduction)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ArgumentError(f"a weight for each of {num_classes} classes does not have shape {list(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(f"label_smoothing must be from 0 to 1, not {label_smoothing}")
        self.num_classes: int = num_classes
        self.out_features: tuple[int, ...] = tuple(out_features)
        self.ignore_index: int | None = ignore_index
        self.label_smoothing: float = label_smoothing
        self.options: LinearCrossEntropyOptions | None = options
        self.linear: Linear = Linear(
            in_features, num_classes * prod(self.out_features), bias=bias, device=device, dtype=dtype
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of the layer's scores, reduced."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, call("view", self.linear.weight, (*shape, self.linear.in_features)), target,
            linear_bias=None if bias is None else call("view", bias, shape), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over classes that are sorted by frequency, the most frequent first.

    The first ``cutoffs[0]`` classes, and one entry for each cluster of others, are told apart by one linear layer, the
    ``head``; the classes of a cluster by two layers through a bottleneck that narrows by ``div_value`` from cluster to
    cluster. Grave et al., "Efficient softmax approximation for GPUs", 2016.

    Raises:
        ArgumentValueError: unless ``cutoffs`` are increasing numbers from 1 to ``n_classes - 1``.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        chosen = list(cutoffs)
        bounds = [0, *chosen, n_classes]
        whole = all(int(c) == c for c in chosen)
        if not chosen or not whole or any(a >= b for a, b in pairwise(bounds)):
            raise ArgumentValueError(f"cutoffs are increasing ints from 1 to {n_classes - 1}, not {chosen}")
        self.in_features: int = in_features
        self.n_classes: int = n_classes
        self.cutoffs: list[int] = [*chosen, n_classes]
        self.div_value: float = div_value
        self.head_bias: bool = head_bias
        self.shortlist_size: int = self.cutoffs[0]
        self.n_clusters: int = len(self.cutoffs) - 1
        self.head_size: int = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head: Linear = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail: ModuleList = ModuleList()
        for i in range(self.n_clusters):
            narrow = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            layers = (Linear(in_features, narrow, bias=False, **made), Linear(narrow, size, bias=False, **made))
            self.tail.append(Sequential(*layers))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        tail: Any = self.tail
        for first, second in tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Each sample's log-probability of its class, and the mean of their negatives.

        ``(N, in_features)`` with classes ``(N,)``, or ``(in_features,)`` with a class ``()``. A class outside the range
        raises RuntimeError at the next read.
        """
        samples = input_.shape[:1] if target_.ndim else ()
        if target_.ndim > 1 or input_.ndim != target_.ndim + 1 or tuple(target_.shape) != tuple(samples):
            raise ShapeError(
                f"classes of shape {list(target_.shape)} do not go with an input of shape {list(input_.shape)}: it has "
                "one dimension more, and as many rows"
            )
        if not target_.ndim:
            output, loss = self.forward(call("unsqueeze", input_, 0), call("unsqueeze", target_, 0))
            return _ASMoutput(call("squeeze", output, 0), loss)
        known = call("logical_and", call("ge", target_, 0), call("lt", target_, self.n_classes))
        entry = call("where", call("lt", target_, self.shortlist_size), target_, self.head_size)
        rows = []
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            inside = call("logical_and", call("ge", target_, low), call("lt", target_, high))
            # The rows of a cluster, however many: their number stays on the server.
            rows.append(call("squeeze", call("nonzero", inside), 1))
            entry = call("where", inside, self.shortlist_size + i, entry)
        # An entry outside the head is what an unknown class comes to.
        entry = call("where", known, entry, self.head_size)
        head = F.log_softmax(self.head(input_), dim=1)
        output = call("squeeze", call("gather", head, 1, call("unsqueeze", entry, 1)), 1)
        for i, chosen in enumerate(rows):
            among = call("sub", call("index_select", target_, 0, chosen), self.cutoffs[i])
            logs = F.log_softmax(self.tail[i](call("index_select", input_, 0, chosen)), dim=1)
            own = call("squeeze", call("gather", logs, 1, call("unsqueeze", call("to", among, int64), 1)), 1)
            output = call("index_add", output, 0, chosen, own)
        return _ASMoutput(output, call("mean", call("neg", output)))

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: ``(N, in_features)`` to ``(N, n_classes)``."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [call("slice", head, 1, 0, self.shortlist_size, 1)]
        for i in range(self.n_clusters):
            at = self.shortlist_size + i
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(call("add", cluster, call("slice", head, 1, at, at + 1, 1)))
        return call("cat", parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Each sample's most probable class: ``(N, in_features)`` to ``(N,)``."""
        return call("argmax", self.log_prob(input), 1)
