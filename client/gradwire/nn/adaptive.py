"""A softmax over very many classes that spends less on the rare ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from gradwire_protocol.dtypes import int64
from gradwire_protocol.errors import ArgumentValueError, ShapeError

from ..dispatch import call
from . import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Any
    loss: Any


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
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        chosen = list(cutoffs)
        bounds = [0, *chosen, n_classes]
        whole = all(int(c) == c for c in chosen)
        if not chosen or not whole or any(a >= b for a, b in pairwise(bounds)):
            raise ArgumentValueError(f"cutoffs are increasing ints from 1 to {n_classes - 1}, not {chosen}")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*chosen, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            narrow = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            layers = (Linear(in_features, narrow, bias=False, **made), Linear(narrow, size, bias=False, **made))
            self.tail.append(Sequential(*layers))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Any, target: Any) -> Any:
        """Each sample's log-probability of its class, and the mean of their negatives.

        ``(N, in_features)`` with classes ``(N,)``, or ``(in_features,)`` with a class ``()``. A class outside the range
        raises RuntimeError at the next read.
        """
        if target.ndim > 1 or input.ndim != target.ndim + 1 or (target.ndim and input.shape[0] != target.shape[0]):
            raise ShapeError(
                f"classes of shape {list(target.shape)} do not go with an input of shape {list(input.shape)}: it has "
                "one dimension more, and as many rows"
            )
        if not target.ndim:
            output, loss = self.forward(call("unsqueeze", input, 0), call("unsqueeze", target, 0))
            return _ASMoutput(call("squeeze", output, 0), loss)
        known = call("logical_and", call("ge", target, 0), call("lt", target, self.n_classes))
        entry = call("where", call("lt", target, self.shortlist_size), target, self.head_size)
        rows = []
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            inside = call("logical_and", call("ge", target, low), call("lt", target, high))
            # The rows of a cluster, however many: their number stays on the server.
            rows.append(call("squeeze", call("nonzero", inside), 1))
            entry = call("where", inside, self.shortlist_size + i, entry)
        # An entry outside the head is what an unknown class comes to.
        entry = call("where", known, entry, self.head_size)
        head = F.log_softmax(self.head(input), dim=1)
        output = call("squeeze", call("gather", head, 1, call("unsqueeze", entry, 1)), 1)
        for i, chosen in enumerate(rows):
            among = call("sub", call("index_select", target, 0, chosen), self.cutoffs[i])
            logs = F.log_softmax(self.tail[i](call("index_select", input, 0, chosen)), dim=1)
            own = call("squeeze", call("gather", logs, 1, call("unsqueeze", call("to", among, int64), 1)), 1)
            output = call("index_add", output, 0, chosen, own)
        return _ASMoutput(output, call("mean", call("neg", output)))

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes: ``(N, in_features)`` to ``(N, n_classes)``."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [call("slice", head, 1, 0, self.shortlist_size, 1)]
        for i in range(self.n_clusters):
            at = self.shortlist_size + i
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(call("add", cluster, call("slice", head, 1, at, at + 1, 1)))
        return call("cat", parts, 1)

    def predict(self, input: Any) -> Any:
        """Each sample's most probable class: ``(N, in_features)`` to ``(N,)``."""
        return call("argmax", self.log_prob(input), 1)
