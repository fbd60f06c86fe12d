"""Where a backward pauses for its client, and the node whose derivative lives there."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from gradwire_protocol.errors import GradwireError, GraphError
from gradwire_protocol.meta import Meta
from gradwire_protocol.ops.callbacks import HOLD

from .regions import Hold, Region
from .tape import Edge
from .tensor import Tensor

if TYPE_CHECKING:
    from .engine import Engine

Gradients = list[Tensor | None]


class ClientNode:
    """A node of the graph whose derivative is a client's: a custom Function."""

    __slots__ = ("__weakref__", "account", "edges", "name", "outs", "position", "seq", "watchers")

    saved_bytes = 0
    suspends = True

    def __init__(
        self, name: str, edges: tuple[Edge | None, ...], outs: tuple[Meta, ...], seq: int, account: Any, position: int
    ) -> None:
        self.name = name
        self.edges = edges
        self.outs = outs
        self.seq = seq
        self.position = position
        self.account = account
        self.watchers: dict[int, Any] | None = None
        account.nodes += 1

    def __del__(self) -> None:
        self.account.nodes -= 1

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def free(self) -> None:
        """What it saved is the client's to free."""

    def apply(self, engine: Engine, grads: Gradients, needed: list[bool]) -> Gradients:
        raise GraphError(f"{self.name} has its derivative in the client that made it: only that client can go through")


@dataclass
class Call:
    """Backward waits here for its client: the stage, the node, and the tensors the client is given."""

    stage: int
    node: Any
    tensors: Gradients


class Pauses:
    """The places at which a backward pauses, in the order in which its client expects them: nodes and regions."""

    __slots__ = ("_held", "_stages", "sequence")

    def __init__(self, nodes: list[Any], stages: list[int]) -> None:
        self._stages: dict[int, list[int]] = {}
        self._held: dict[int, list[Region]] = {}
        self.sequence: list[Any] = []
        for node, stage in zip(nodes, stages, strict=True):
            if type(node) is Region:
                self.sequence.append(node)
                for held in node.nodes():
                    self._held.setdefault(id(held), []).append(node)
            elif id(node) not in self._stages:
                self._stages[id(node)] = []
                self.sequence.append(node)
                self._stages[id(node)].append(stage)
            else:
                self._stages[id(node)].append(stage)

    def at(self, node: Any) -> list[int] | tuple[()]:
        """The stages in which the backward pauses at this node."""
        return self._stages.get(id(node), ())

    def order(self, reachable: list[Any]) -> list[Any]:
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
        early: dict[int, Any] = {}
        waiting: list[Any] = []
        passed: set[int] = set()
        order: list[Any] = []
        while ready or waiting or turn is not None:
            if type(turn) is Region and (waiting or not ready):
                order.append(Hold(turn))
                passed.add(id(turn))
                turn = next(turns, None)
                for node in waiting:
                    number += 1
                    heappush(ready, (-node.seq, number, node))
                waiting.clear()
                continue
            if turn is not None and type(turn) is not Region and (id(turn) in early or id(turn) not in feeding):
                node = early.pop(id(turn), turn)
                turn = next(turns, None)
            elif not ready:
                raise GraphError("the pauses of this backward are not in an order that its graph allows")
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


class Backward:
    """A backward between two of its pauses.

    Attributes:
        inputs: the tensors whose gradients are wanted, or ``None`` for all leaves.
        accumulate: whether their gradients go to ``grad``.
    """

    def __init__(
        self,
        engine: Engine,
        generator: Generator[Call, Gradients, Gradients],
        inputs: list[Tensor] | None,
        accumulate: bool,
        create_graph: bool,
    ) -> None:
        self._generator = generator
        self._anomaly = engine.anomaly
        self._step = 0
        self._failure: GradwireError | None = None
        self.inputs = inputs
        self.accumulate = accumulate
        self.create_graph = create_graph

    def advance(self, engine: Engine, step: int, supplied: Gradients) -> tuple[Call | None, Gradients]:
        """Go on; the next call, or None and the results when it is over.

        Raises:
            GraphError: when an earlier step failed, or steps are not taken one after another.
        """
        if self._failure is not None:
            raise self._failure
        if step != self._step:
            raise GraphError(f"backward stands at its pause {self._step}, and cannot go on from pause {step}")
        self._step += 1
        before = engine.grad_enabled, engine.anomaly
        engine.grad_enabled, engine.anomaly = self.create_graph, self._anomaly
        try:
            return self._generator.send(supplied if step else None), []  # type: ignore[arg-type]
        except StopIteration as stop:
            return None, stop.value
        except GradwireError as error:
            self._failure = error
            raise
        finally:
            engine.grad_enabled, engine.anomaly = before

    def close(self) -> None:
        self._generator.close()
