"""When the gradients of a module's parameters are averaged over the ranks of a group, and in which pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from gradwire_protocol.errors import GraphError

from ..._core.backward.backward_listeners import listen
from ..._core.backward.client_backward import reachable
from ..._core.graph.graph_mirror import AccumulateGrad, edge_of
from ..._core.tensor.tensor import NO_GRAD, PRESENT, UNKNOWN_GRAD, Tensor
from ...distributed.collectives import run
from ...distributed.process_group import ProcessGroup

FIRST_BUCKET_BYTES: Final = 1 << 20
"""The first bucket is small, so that the exchange begins soon."""
NAMED: Final = 10
"""How many parameters an error names."""


def buckets_of(params: Sequence[Tensor], capacity: int) -> list[list[Tensor]]:
    """Parameters in pieces of one dtype and device of about ``capacity`` bytes, the last parameters first: their
    gradients are the first that backward has."""
    found: list[list[Tensor]] = []
    open_at: dict[Any, tuple[int, int]] = {}
    for param in reversed(params):
        kind = (param.dtype, param._form.device)
        at, held = open_at.get(kind, (-1, 0))
        size = param.numel() * param.dtype.itemsize
        limit = min(FIRST_BUCKET_BYTES, capacity) if at == 0 or not found else capacity
        if at < 0 or held + size > limit:
            found.append([])
            at, held = len(found) - 1, 0
        found[at].append(param)
        open_at[kind] = at, held + size
    return found


class GradientAverage:
    """Averages the gradients of parameters after the backward that follows a forward.

    A bucket is averaged as soon as all its parameters have a gradient, by one record that follows the backward's. All
    ranks average the same buckets in the same order, whichever parameters each of them has used.

    Args:
        names, params: all that require grad, in the module's order.
        capacity: bytes of a bucket.
        find_unused: parameters that the outputs of forward do not depend on count as ready.
        static: the first backward after a forward is the only one: what has no gradient then is unused.
    """

    def __init__(
        self, names: Sequence[str], params: Sequence[Tensor], group: ProcessGroup, capacity: int, find_unused: bool,
        static: bool,
    ) -> None:  # fmt: skip
        self._group = group
        self._names = dict(zip(map(id, params), names, strict=True))
        self._buckets = buckets_of(params, capacity)
        self._optional = find_unused or static
        self._static = static
        self._find_unused = find_unused
        self._expecting = False
        self._ready: set[int] = set()
        self._unused: set[int] = set()
        self._next = 0
        listen(self)

    @property
    def buckets(self) -> list[list[Tensor]]:
        """The parameters by bucket, in the order in which they are averaged."""
        return self._buckets

    def check_finished(self) -> None:
        """Check that the last backward has given all parameters a gradient, before another forward.

        Raises:
            GraphError: naming those that it has not.
        """
        if not self._expecting or not self._ready:
            return
        left = [name for key, name in self._names.items() if key not in self._ready and key not in self._unused]
        self._expecting = False
        if left:
            shown = ", ".join(left[:NAMED]) + (f" and {len(left) - NAMED} others" if len(left) > NAMED else "")
            raise GraphError(
                f"the last backward gave these parameters no gradient, so that the ranks could not average all: "
                f"{shown}. Where a loss does not use all parameters, DistributedDataParallel needs "
                "find_unused_parameters=True"
            )

    def prepare(self, outputs: Iterable[Tensor]) -> None:
        """A forward is over: average what the next backward gives."""
        self._expecting, self._next = True, 0
        self._ready.clear()
        self._unused.clear()
        if self._find_unused:
            starts = [edge[0] for edge in map(edge_of, outputs) if edge is not None]
            used = {id(node.variable) for node in reachable(starts) if isinstance(node, AccumulateGrad)}
            self._unused.update(key for key in self._names if key not in used)

    def arrived(self, leaves: list[Any]) -> None:
        """A backward has given these leaves a gradient."""
        if not self._expecting:
            return
        mine = [id(leaf) for leaf in leaves if id(leaf) in self._names]
        if not mine:
            return
        self._ready.update(mine)
        self._unused.difference_update(mine)
        if self._static:
            self._unused.update(key for key in self._names if key not in self._ready)
        while self._next < len(self._buckets):
            bucket = self._buckets[self._next]
            if any(id(param) not in self._ready and id(param) not in self._unused for param in bucket):
                return
            self._next += 1
            self._average(bucket)
        self._expecting = False

    def _average(self, bucket: list[Tensor]) -> None:
        unused = tuple([i for i, param in enumerate(bucket) if id(param) in self._unused]) if self._optional else None
        run("average_gradients", self._group, bucket, unused)
        for param in bucket:
            if param._grad_state == NO_GRAD:
                # Other ranks may have used it, and then it has the mean of their gradients.
                param._grad_state = UNKNOWN_GRAD if self._optional else PRESENT
                param._grad_history = param._grad_proxy = None
            elif param._grad_proxy is not None:
                param._grad_proxy._bump()
