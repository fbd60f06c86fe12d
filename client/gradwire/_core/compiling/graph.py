"""The mirror's share of a replay: tensors and nodes as templates, from which each replay has its own.

A program rarely looks at the history of what a compiled function returns, and never at most of it. So a replay makes
the nodes of its results alone; what lies behind them is made when somebody asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ..backward.predicted_history import PredictedNode
from ..graph.graph_mirror import AccumulateGrad, Edge, Node, edge_of, next_seq
from ..graph.node_signature import NodeSignature
from ..graph.save_policy import KEPT, MISSING
from ..tensor.memory import ITSELF, memory_of
from ..tensor.own_attributes import everything
from ..tensor.tensor import Tensor
from .state import CONSTANTS, NotReplayable

_NOT_KEPT: Final = frozenset({"_row_of", "_last_read", "_accumulator", "_grad_proxy", "_memory", "_origin", "_offset"})
_AS_IS: Final = frozenset({
    "_requires", "_grad_state", "_chosen", "_seen", "_creation", "_path", "_inference", "_uploaded",
})  # fmt: skip
_SEQ_STEP: Final = 2.0**-20
"""Nodes of one replay are numbered between two whole numbers, so that no other thread's node comes between."""


@dataclass(slots=True)
class NodeTemplate:
    """A node as a replay makes it. Edges are None, (True, number of a node here, slot) or (False, external, slot)."""

    cls: type[Node]
    signature: NodeSignature
    edges: list[Any]
    line: Any
    saved: list[Any] | None
    numbers: Any
    inner: int | None
    at: float


@dataclass(slots=True)
class TensorTemplate:
    """A tensor that outlives the function. ``cell``: the number of its version cell, ``memory``: of that of its memory,
    where that is another one; ``base`` and ``origin``: see :class:`GraphTemplate`."""

    cls: type[Tensor]
    offset: int
    meta: Any
    node: int | None
    slot: int
    attributes: dict[str, Any]
    cell: int | None = None
    base: tuple[str, int] | None = None
    grad: tuple[str, int] | None = None
    memory: int | None = None
    origin: Any = None


@dataclass(slots=True)
class GraphTemplate:
    """All nodes and tensors that a call leaves behind, by number; references are ("made", n) or ("external", n)."""

    nodes: list[NodeTemplate] = field(default_factory=list)
    tensors: list[TensorTemplate] = field(default_factory=list)
    cells: list[list[Any]] = field(default_factory=list)  # those made in the call, as they were left
    edges: list[int] = field(default_factory=list)  # externals whose edge is asked for, in order
    watched: list[int] = field(default_factory=list)  # externals whose version some node keeps, in order
    ids: list[int] = field(default_factory=list)  # of the latter: the external that had the id

    @property
    def roots(self) -> int:
        """How many nodes belong to tensors."""
        return len({t.node for t in self.tensors if t.node is not None})


class GraphTemplateBuilder:
    """Makes the templates, from what a call has left behind.

    Args:
        externals: the tensors that the call found, with the edges and versions that they had before it.
        base: the id of the call's first result.
        seq: the number of the first node that it can have made.

    Raises:
        Unfit: for what a replay could not make.
    """

    def __init__(
        self, externals: list[Tensor], edges: list[Edge | None], versions: list[int], base: int, seq: float
    ) -> None:
        self.weave = GraphTemplate()
        self._externals = {id(t): k for k, t in enumerate(externals)}
        self._list = externals
        self._ids = {t._id: k for k, t in reversed(list(enumerate(externals)))}
        self._edges = {id(e[0]): k for k, e in enumerate(edges) if e is not None}
        self._cells = {id(t._versions): k for k, t in reversed(list(enumerate(externals))) if t._versions is not None}
        self._memories = {id(memory_of(t)): k for k, t in reversed(list(enumerate(externals)))}
        self._versions = versions
        self.base = base
        self._seq = seq
        self._nodes: dict[int, int] = {}
        self._made: dict[int, int] = {}
        self._inner_cells: dict[int, int] = {}
        self._kept: list[Any] = []

    def reference(self, tensor: Tensor) -> tuple[str, int]:
        """How a replay finds this tensor."""
        known = self._externals.get(id(tensor))
        if known is not None:
            return "external", known
        found = self._made.get(id(tensor))
        return "made", self._tensor(tensor) if found is None else found

    @property
    def offsets(self) -> set[int]:
        """Of the tensors that outlive the call."""
        return {t.offset for t in self.weave.tensors}

    def _tensor(self, tensor: Tensor) -> int:
        offset = tensor._id - self.base
        if offset < 0:
            raise NotReplayable("it returns a tensor that it found neither in its arguments nor in what it can reach")
        if tensor._part is not None or tensor._grad_history or tensor._duals or tensor._scope or tensor._levels or (
            tensor._retains
        ):  # fmt: skip
            raise NotReplayable("it returns a tensor with hooks, or one that is mapped or dual")
        number = len(self.weave.tensors)
        self._made[id(tensor)] = number
        made = TensorTemplate(type(tensor), offset, tensor._form, None, tensor._slot, {})
        self.weave.tensors.append(made)
        for name, value in everything(tensor).items():
            if name in _AS_IS or (name not in Tensor.__annotations__ and isinstance(value, CONSTANTS)):
                made.attributes[name] = value
            elif name not in _NOT_KEPT and value not in (None, ()):
                raise NotReplayable(f"it returns a tensor with an attribute {name!r}")
        if tensor._versions is not None:
            made.cell = self._cell(tensor._versions)
        if tensor._base_tensor is not None:
            made.base = self.reference(tensor._base_tensor)
            if made.base[0] == "external" and self._list[made.base[1]]._base_tensor is not None:
                raise NotReplayable("it returns a view of a view that it was given")
        if tensor._memory is not None:
            made.memory = self._memory(tensor._memory)
        if tensor._origin is not None:
            made.origin = ITSELF if tensor._origin is ITSELF else self.reference(tensor._origin)
        if tensor._grad_proxy is not None:
            made.grad = self.reference(tensor._grad_proxy)
        if tensor._requires:
            accumulator = tensor._accumulator() if tensor._accumulator is not None else None
            if accumulator is not None:
                raise NotReplayable("it makes a leaf that requires grad, and computes with it")
        if tensor._node is not None:
            made.node = self._node(tensor._node)
        return number

    def _cell(self, cell: list[Any]) -> int:
        """Cells of externals are below zero: -1 - the external."""
        known = self._cells.get(id(cell))
        if known is not None:
            return -1 - known
        found = self._inner_cells.get(id(cell))
        if found is None:
            found = self._inner_cells[id(cell)] = len(self.weave.cells)
            self.weave.cells.append(list(cell))
            self._kept.append(cell)
        return found

    def _memory(self, cell: list[Any]) -> int:
        known = self._memories.get(id(cell))
        found = self._cell(cell) if known is None else -1 - known
        if known is None and found < 0:
            raise NotReplayable("it returns a tensor that shows memory which an argument of it showed before")
        return found

    def _node(self, root: Node) -> int:
        todo = [root]
        while todo:
            node = todo[-1]
            if id(node) in self._nodes:
                todo.pop()
                continue
            later = [e[0] for e in node.edges if e is not None and self._is_inner(e[0])]
            later += [node.inner] if node.inner is not None else []
            later = [n for n in later if id(n) not in self._nodes]
            if later:
                todo += later
            else:
                todo.pop()
                self._nodes[id(node)] = len(self.weave.nodes)
                self.weave.nodes.append(self._template(node))
                self._kept.append(node)
        return self._nodes[id(root)]

    def _is_inner(self, node: Node) -> bool:
        return not isinstance(node, AccumulateGrad) and node.seq > self._seq and id(node) not in self._edges

    def _template(self, node: Node) -> NodeTemplate:
        kind = type(node).plain or type(node)
        if kind not in (Node, PredictedNode) or node.part is not None or node.metadata_:
            raise NotReplayable(f"the program takes part in backward, at {node.label}")
        edges: list[Any] = []
        for edge in node.edges:
            if edge is None:
                edges.append(None)
            elif self._is_inner(edge[0]):
                edges.append((True, self._nodes[id(edge[0])], edge[1]))
            else:
                edges.append((False, self._outer(edge[0]), edge[1]))
        saved = None if node.saved is None else [self._saved(entry) for entry in node.saved]
        return NodeTemplate(
            kind, node.signature, edges, node.line, saved, node.numbers,
            None if node.inner is None else self._nodes[id(node.inner)], node.seq - self._seq,
        )  # fmt: skip

    def _outer(self, node: Node) -> int:
        if isinstance(node, AccumulateGrad):
            external = self._externals.get(id(node.variable))
        else:
            external = self._edges.get(id(node))
        if external is None:
            raise NotReplayable(f"it goes on from a {node.label} that belongs to none of the tensors it found")
        if external not in self.weave.edges:
            self.weave.edges.append(external)
        return self.weave.edges.index(external)

    def _saved(self, entry: Any) -> Any:
        """(cell, version, place, id, meta), with the numbers of a cell and of an external, or an offset, in it."""
        if entry is KEPT or entry[0] is None or entry is MISSING:
            return entry
        cell, version, at, number, meta = entry
        where = self._cell(cell)
        offset = number - self.base
        if where < 0:
            external = -1 - where
            if external not in self.weave.watched:
                self.weave.watched.append(external)
                self.weave.ids.append(self._ids.get(number, external))
            return -1 - self.weave.watched.index(external), version - self._versions[external], at, offset, meta
        return where, version, at, offset, meta


class GraphInstance:
    """One replay's own: what it takes to make its nodes, whenever that is."""

    __slots__ = ("_base", "_cells", "_edges", "_ids", "_nodes", "_seq", "_versions", "_watched", "_weave", "cells")

    def __init__(self, weave: GraphTemplate, externals: list[Tensor], versions: list[int], base: int) -> None:
        self._weave = weave
        self._base = base
        self._seq = float(next_seq())
        # Before the call changes anything. No tensor is kept alive by it: the mirror never keeps one.
        self._edges = [edge_of(externals[k]) for k in weave.edges]
        self._watched = [externals[k]._cell() for k in weave.watched]
        self._versions = [versions[k] for k in weave.watched]
        self._ids = [externals[k]._id for k in weave.ids]
        self.cells = [list(cell) for cell in weave.cells]
        self._nodes: list[Node] | None = None

    def node(self, number: int) -> Node:
        """The node of this number, with its past still to come, if it can be so."""
        template = self._weave.nodes[number]
        if self._weave.roots > 1 or template.inner is not None or template.cls is not Node or template.numbers:
            return self.all()[number]  # results may be in each other's past: each node is there once
        made = LazyNode.__new__(LazyNode)
        made.signature, made.line = template.signature, template.line
        made.seq = self._seq + template.at * _SEQ_STEP
        made.numbers, made.part, made.inner, made.retained = (), None, None, None
        made.__dict__["_woven"] = self, number
        return made

    def all(self) -> list[Node]:
        """Every node."""
        if self._nodes is not None:
            return self._nodes
        nodes: list[Node] = []
        for template in self._weave.nodes:
            made = template.cls.__new__(template.cls)
            made.signature, made.line = template.signature, template.line
            made.seq = self._seq + template.at * _SEQ_STEP
            made.numbers, made.part, made.retained = template.numbers, None, None
            made.inner = None if template.inner is None else nodes[template.inner]
            if isinstance(made, PredictedNode):
                made.memory = None
            self._fill(made, template, nodes)
            nodes.append(made)
        self._nodes = nodes
        return nodes

    def _fill(self, made: Node, template: NodeTemplate, nodes: list[Node]) -> None:
        made.edges = tuple([self._edge(edge, nodes) for edge in template.edges])
        made.saved = None if template.saved is None else tuple([self._entry(entry) for entry in template.saved])

    def unfold(self, node: LazyNode, number: int) -> None:
        """Give a node its past."""
        nodes = self.all()
        self._fill(node, self._weave.nodes[number], nodes)
        node.__class__ = Node  # type: ignore[assignment]
        nodes[number] = node

    def _edge(self, edge: Any, nodes: list[Node]) -> Edge | None:
        if edge is None:
            return None
        inner, number, slot = edge
        if inner:
            return nodes[number], slot
        found = self._edges[number]
        return None if found is None else (found[0], slot)

    def _entry(self, entry: Any) -> Any:
        if entry[0] is None or entry is MISSING:
            return entry
        cell, version, at, offset, meta = entry
        if cell < 0:
            at_watched = -1 - cell
            return self._watched[at_watched], self._versions[at_watched] + version, at, self._ids[at_watched], meta
        return self.cells[cell], version, at, self._base + offset, meta


class LazyNode(Node):
    """A node whose past is made when somebody looks at it."""

    __slots__ = ()

    def __init__(self) -> None:
        raise NotImplementedError("it is made without its past")

    def __getattr__(self, name: str) -> Any:
        woven = self.__dict__.get("_woven")
        if name not in ("edges", "saved") or woven is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        del self.__dict__["_woven"]
        woven[0].unfold(self, woven[1])
        return getattr(self, name)
