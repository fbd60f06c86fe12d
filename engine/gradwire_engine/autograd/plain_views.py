"""The short way through the pipeline for views: what :mod:`.plain_calls` is for kernels.

Most views are of a tensor in host memory, have its dtype, and keep nothing for backward. Where they begin and what
strides they have follows from the metas, so the array over the memory and the node are made at once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gradwire_protocol.history import PLAIN
from gradwire_protocol.meta import Inference, Meta

from ..runtime.arrays import native
from ..runtime.backends import NumpyBackend
from .engine_context import EngineContext
from .inplace import path_of
from .operands import UNDONE
from .registry import Row
from .tape import Node, edge_of
from .tensor import Tensor

MOST_VIEWS: Final = 64
"""Views of one call; a call that makes more goes the long way."""


class PlainView:
    """A call of one op that makes views of a tensor with this meta.

    Attributes:
        shown: of each view its meta, where it begins after the source in elements, and what NumPy makes it of: its
            shape, its dtype and its strides in bytes.
        derived: whether it has a history where the source has.
    """

    __slots__ = ("_name", "_outs", "_row", "_several", "derived", "shown")

    def __init__(self, row: Row, inferred: Inference) -> None:
        self._row = row
        self._outs = inferred.outs
        self._name = inferred.grad_fn or row.op.grad_fn or row.op.name
        self._several = row.op.results != 1
        begins = zip(inferred.outs, inferred.offsets or (), strict=True)
        self.shown = tuple([_shown(out, delta) for out, delta in begins])
        self.derived = row.has_derivative and inferred.outs[0].dtype.carries_gradient

    def run(self, engine: EngineContext, values: list[Any], rule_args: list[Any]) -> Any:
        """The views, or None where the call has to go the long way. ``rule_args`` may become the node's own."""
        source: Tensor = values[0]
        storage, base = source.storage, source.base
        memory = storage._memory
        node: Node | None = None
        if self.derived and engine.grad_enabled and (
            source.requires_grad_flag or source.history is not None or (base is not None and base.requires_grad)
        ):  # fmt: skip
            account = engine.account
            edges = (edge_of(source),)  # first, since it may make a node
            seq = engine.new_node_seq()
            node = Node(self._name, self._row, rule_args, edges, self._outs, seq, account, engine.position)
            node.saved = {}
            if account.nodes > account.limits.max_graph_nodes:
                account.check_nodes()
        results = []
        try:
            if memory is None:
                memory = storage.memory(engine.backends["cpu"])
            for meta, delta, shape, dtype, strides in self.shown:
                offset = source.offset + delta
                array = np.ndarray(shape, dtype, memory, offset * dtype.itemsize, strides)
                result = Tensor(engine, array, meta, storage, offset)
                results.append(result)
                if node is not None:
                    result.history, result.slot = node, len(results) - 1
        except UNDONE:
            return None
        if source.inference:
            for result in results:
                result.inference = True
        else:
            creation = PLAIN
            if self._several or base is not None or not engine.grad_enabled or engine.inference:
                creation = engine.creation_of(self._row, source)
            for result in results:
                result.base = source if base is None else base
                result.seen_version = storage.version
                result.creation = creation
                if source.path is not None:
                    result.path = path_of(self._row.op, source, result)
        if node is not None and engine.region is not None:
            engine.region.note(node)
        return tuple(results) if self._several else results[0]


def _shown(out: Meta, delta: int) -> tuple[Meta, int, tuple[int, ...], np.dtype[Any], tuple[int, ...]]:
    size = out.dtype.itemsize
    return out, delta, out.shape, native(out.dtype), tuple([step * size for step in out.stride])


def plain_view(engine: EngineContext, row: Row, described: list[Any], inferred: Inference) -> PlainView | None:
    """The short way of a call that makes views, if it has one.

    Args:
        described: what the rule was given.
        inferred: what it answered.
    """
    op, source, outs = row.op, described[0], inferred.outs
    if (
        inferred.offsets is None or op.grad_fn is None or op.untracked or op.control or op.name == "as_strided"
        or type(source) is not Meta or source.device != "cpu" or not source.known or row.composite is not None
        or not 0 < len(outs) <= MOST_VIEWS or row.saves or any(needs for needs, _ in row.rules.values())
        or type(engine.backends["cpu"]) is not NumpyBackend
    ):  # fmt: skip
        return None
    if any(out.dtype is not source.dtype or out.device != "cpu" or not out.numel or not out.known for out in outs):
        return None
    if row.differentiable not in ((), (0,)) or len(row.tensor_at) != 1 or row.number_like_at:
        return None
    return PlainView(row, inferred)
