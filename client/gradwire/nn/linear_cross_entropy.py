"""A linear layer and its cross entropy as one loss."""

from __future__ import annotations

from math import prod
from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..dispatch import call
from . import functional as F
from .linear import Linear
from .loss import _WeightedLoss


class LinearCrossEntropyOptions:
    """How PyTorch's :class:`LinearCrossEntropyLoss` saves memory; without effect on what is computed here."""

    def __init__(
        self, allow_retain_graph: bool = False, batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto", acc_policy: str = "auto", acc_dtype: Any = None,
    ) -> None:  # fmt: skip
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

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
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Any = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weight, reduction=reduction)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ArgumentError(f"a weight for each of {num_classes} classes does not have shape {list(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(f"label_smoothing must be from 0 to 1, not {label_smoothing}")
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(in_features, num_classes * prod(self.out_features), bias=bias, device=device, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Any:
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
