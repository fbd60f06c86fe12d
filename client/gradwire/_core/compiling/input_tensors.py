"""The tensors that a function finds, as they are before it runs, and those of them that it uses."""

from __future__ import annotations

from typing import Any

from ..graph.graph_mirror import Edge, edge_of
from ..tensor.tensor import Tensor
from .capture import Capture
from .state import Facts, NotReplayable, ReachableState, facts


class InputTensors:
    """The tensors that a function can find, as they are before it runs."""

    def __init__(self, arguments: list[Tensor], state: ReachableState, seq: float) -> None:
        self.seq = seq
        self._roles: dict[int, tuple[str, Any]] = {}
        self._tensors: dict[int, Tensor] = {}
        self.facts: dict[int, Facts] = {}
        self.edges: dict[int, Edge | None] = {}
        self.nodes: dict[int, Any] = {}
        self.versions: dict[int, int] = {}
        self.grads: dict[int, Any] = {}
        self._paths: dict[int, str] = {}
        for i, tensor in enumerate(arguments):
            if id(tensor) in state.tensors:
                raise NotReplayable(f"argument {i} is also reached as {state.tensors[id(tensor)][2]}")
            self._add(tensor, ("argument", i), f"argument {i}")
        for tensor, _, path in state.tensors.values():
            self._add(tensor, ("fixed", tensor), path)

    def _add(self, tensor: Tensor, role: tuple[str, Any], path: str) -> None:
        if id(tensor) in self._roles:
            return
        self._roles[id(tensor)] = role
        self._tensors[id(tensor)] = tensor
        self._paths[id(tensor)] = path
        self.edges[id(tensor)] = edge_of(tensor)
        self.nodes[id(tensor)] = tensor._node
        if tensor._base_tensor is not None:
            self.nodes[id(tensor._base_tensor)] = tensor._base_tensor._node
        self.facts[id(tensor)] = facts(tensor)
        self.versions[id(tensor)] = tensor._cell()[0]
        self.grads[id(tensor)] = tensor._grad_proxy
        if tensor._grad_proxy is not None:
            self._add(tensor._grad_proxy, ("grad", id(tensor)), f"{path}.grad")

    def path(self, tensor: Tensor) -> str:
        """Where it was found."""
        return self._paths[id(tensor)]

    def used(self, capture: Capture, base: int) -> tuple[list[Tensor], list[tuple[str, Any]]]:
        """The tensors that take part in a call, and what a replay finds them by. All whose memory the call has written
        to are among them, since they were mentioned."""
        by_id = {t._id: t for t in self._tensors.values()}
        wanted: dict[int, Tensor] = {}
        for frame in capture.frames:
            for number in frame.external:
                if number < base:
                    if number not in by_id:
                        raise NotReplayable(
                            "it computes with a tensor that is neither among its arguments nor in what it can reach"
                        )
                    wanted[id(by_id[number])] = by_id[number]
        for tensor in self._tensors.values():  # a view's memory is its base's
            if (
                tensor._cell()[0] != self.versions[id(tensor)]
                or tensor._grad_proxy is not self.grads[id(tensor)]
                or tensor._grad_state != self.facts[id(tensor)][4]
            ):
                wanted[id(tensor)] = tensor
        for tensor in list(wanted.values()):
            self._with_owner(tensor, wanted)
        order = sorted(wanted.values(), key=lambda t: self._depth(t))
        numbers = {id(t): k for k, t in enumerate(order)}
        roles = []
        for tensor in order:
            kind, where = self._roles[id(tensor)]
            roles.append((kind, numbers[where] if kind == "grad" else where))
        return order, roles

    def _with_owner(self, tensor: Tensor, wanted: dict[int, Tensor]) -> None:
        kind, where = self._roles[id(tensor)]
        if kind == "grad" and where not in wanted:
            wanted[where] = self._tensors[where]
            self._with_owner(self._tensors[where], wanted)

    def _depth(self, tensor: Tensor) -> int:
        """Gradients come after what they are gradients of."""
        kind, where = self._roles[id(tensor)]
        return 1 + self._depth(self._tensors[where]) if kind == "grad" else 0

    def bumped(self, externals: list[Tensor]) -> list[tuple[int, int, list[Any]]]:
        """Of each version that has changed: an external, by how much, and by which op where."""
        found, seen = [], set()
        for k, tensor in enumerate(externals):
            cell = tensor._cell()
            by = cell[0] - self.versions[id(tensor)]
            if by and id(cell) not in seen:
                seen.add(id(cell))
                found.append((k, by, list(cell[1:])))
        return found


def shared_memory(tensors: list[Tensor]) -> tuple[int, ...]:
    """Which of the tensors share memory."""
    firsts: dict[int, int] = {}
    return tuple([firsts.setdefault(id(t._versions or t._cell()), k) for k, t in enumerate(tensors)])
