"""Where a backward pauses for its client, and the node whose derivative lives there."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from gradwire_protocol.errors import ArgumentError, GradwireError, GraphError
from gradwire_protocol.meta import Meta
from gradwire_protocol.ops.callbacks import AFTER, BEFORE, BEFORE_RUN, INSTEAD

from ..runtime.memory import MemoryAccount
from .regions import Hold, RecomputedRegion
from .tape import Edge, GraphNode
from .tensor import Tensor

if TYPE_CHECKING:
    from .engine_context import EngineContext

Gradients = list[Tensor | None]


class ClientNode:
    """A node of the graph whose derivative is a client's: a custom Function."""

    __slots__ = ("__weakref__", "account", "edges", "maps", "name", "outs", "position", "seq", "watchers")

    saved_bytes = 0
    suspends = True

    def __init__(
        self, name: str, edges: tuple[Edge | None, ...], outs: tuple[Meta, ...], seq: int, account: MemoryAccount,
        position: int,
    ) -> None:  # fmt: skip
        self.name = name
        self.edges = edges
        self.outs = outs
        self.seq = seq
        self.position = position
        self.account = account
        self.maps: Any = None  # how operands and results are mapped, inside vmap
        self.watchers: dict[int, ref[Tensor]] | None = None
        account.nodes += 1

    def __del__(self) -> None:
        self.account.nodes -= 1

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def free(self) -> None:
        """What it saved is the client's to free."""

    def apply(self, engine: EngineContext, grads: Gradients, needed: list[bool]) -> Gradients:
        raise GraphError(f"{self.name} has its derivative in the client that created it; only that client can run it")


@dataclass
class CallbackRequest:
    """Backward waits here for its client: the stage, the node, and the tensors the client is given."""

    stage: int
    node: Any
    tensors: Gradients


class ClientCallbacks:
    """The places at which a backward pauses, in the order in which its client expects them: nodes and regions."""

    __slots__ = ("_held", "_stages", "sequence")

    def __init__(self, nodes: list[GraphNode | RecomputedRegion], stages: list[int]) -> None:
        self._stages: dict[int, list[int]] = {}
        self._held: dict[int, list[RecomputedRegion]] = {}
        self.sequence: list[GraphNode | RecomputedRegion] = []
        for node, stage in zip(nodes, stages, strict=True):
            if type(node) is RecomputedRegion:
                self.sequence.append(node)
                for held in node.nodes():
                    self._held.setdefault(id(held), []).append(node)
            elif id(node) not in self._stages:
                self._stages[id(node)] = []
                self.sequence.append(node)
                self._stages[id(node)].append(stage)
            else:
                self._stages[id(node)].append(stage)

    def at(self, node: GraphNode) -> list[int] | tuple[()]:
        """The stages in which the backward pauses at this node."""
        return self._stages.get(id(node), ())

    def order(self, reachable: list[GraphNode]) -> list[GraphNode | Hold]:
        """The nodes, each after those that feed gradients to it, pauses in the order of the client.

        A leaf comes as soon as it can, as in PyTorch, since hooks may see the order. A pause at a node that is not
        reachable (the client may know less of a gradient's own graph) stays in its turn.
        """
        feeding = dict.fromkeys(map(id, reachable), 0)
        for node in reachable:
            for edge in node.edges:
                if edge is not None:
                    feeding[id(edge[0])] += 1
        ready = [(-node.seq, i, node) for i, node in enumerate(reachable) if not feeding[id(node)]]
        heapify(ready)
        number = len(reachable)
        turns = iter(self.sequence)
        turn = next(turns, None)
        early: dict[int, GraphNode] = {}
        waiting: list[GraphNode] = []
        passed: set[int] = set()
        order: list[GraphNode | Hold] = []
        while ready or waiting or turn is not None:
            if type(turn) is RecomputedRegion and (waiting or not ready):
                order.append(Hold(turn))
                passed.add(id(turn))
                turn = next(turns, None)
                for node in waiting:
                    number += 1
                    heappush(ready, (-node.seq, number, node))
                waiting.clear()
                continue
            if (
                turn is not None
                and not isinstance(turn, RecomputedRegion)
                and (id(turn) in early or id(turn) not in feeding)
            ):
                node = early.pop(id(turn), turn)
                turn = next(turns, None)
            elif not ready:
                raise GraphError("the order of this backward's pauses does not match its graph")
            else:
                node = heappop(ready)[2]
                if any(id(region) not in passed for region in self._held.get(id(node), ())):
                    waiting.append(node)
                    continue
                if id(node) in self._stages:
                    early[id(node)] = node
                    continue
            order.append(node)
            if id(node) not in feeding:
                continue
            for edge in node.edges:
                if edge is not None:
                    feeding[id(edge[0])] -= 1
                    if not feeding[id(edge[0])]:
                        number += 1
                        heappush(ready, (-edge[0].seq, number, edge[0]))
        return order


REMOVED: Final[Any] = object()
"""Stands for a gradient that a client has removed."""


def with_replaced(gradients: Gradients, supplied: Gradients) -> Gradients:
    """Gradients after a client has replaced some, or removed them."""
    return [old if new is None else None if new is REMOVED else new for old, new in zip_longest(gradients, supplied)]


class Backward:
    """A backward between two of its pauses.

    Attributes:
        inputs: the tensors whose gradients are wanted, or ``None`` for all leaves.
        accumulate: whether their gradients go to ``grad``.
    """

    def __init__(
        self,
        engine: EngineContext,
        generator: Generator[CallbackRequest, Gradients, Gradients],
        inputs: list[Tensor] | None,
        accumulate: bool,
        create_graph: bool,
    ) -> None:
        self._generator = generator
        self._anomaly = engine.anomaly
        self._step = 0
        self._call: CallbackRequest | None = None
        self._failure: GradwireError | None = None
        self.inputs = inputs
        self.result_maps: Any = None  # how the inputs are mapped, inside vmap
        self.accumulate = accumulate
        self.create_graph = create_graph

    def advance(
        self, engine: EngineContext, step: int, supplied: Gradients, removed: tuple[int, ...] = ()
    ) -> tuple[CallbackRequest | None, Gradients]:
        """Go on; the next call, or None and the results when it is over.

        Raises:
            ArgumentError: when a gradient is removed that is not there.
            GraphError: when an earlier step failed, or steps are not taken one after another.
        """
        if self._failure is not None:
            raise self._failure
        if removed:
            if not all(0 <= i < len(supplied) for i in removed):
                raise ArgumentError(f"of {len(supplied)} gradients those at {list(removed)} cannot be removed")
            supplied = [REMOVED if i in removed else g for i, g in enumerate(supplied)]
        if step != self._step:
            raise GraphError(f"backward waits at pause {self._step}, not at pause {step}")
        self._check(supplied)
        self._step += 1
        before = engine.grad_enabled, engine.anomaly
        engine.grad_enabled, engine.anomaly = self.create_graph and not engine.inference, self._anomaly
        try:
            self._call = self._generator.send(supplied if step else None)  # type: ignore[arg-type]
            return self._call, []
        except StopIteration as stop:
            return None, stop.value
        except GradwireError as error:
            self._failure = error
            raise
        finally:
            engine.grad_enabled, engine.anomaly = before

    def _check(self, supplied: Gradients) -> None:
        call = self._call
        expected = 0
        if call is not None and call.stage in (BEFORE, BEFORE_RUN):
            expected = len(call.node.outs)
        elif call is not None and call.stage in (INSTEAD, AFTER):
            expected = len(call.node.edges)
        if len(supplied) > expected or (call is not None and call.stage == INSTEAD and len(supplied) < expected):
            raise ArgumentError(f"backward waits for {expected} gradients, but got {len(supplied)}")

    def close(self) -> None:
        self._generator.close()
