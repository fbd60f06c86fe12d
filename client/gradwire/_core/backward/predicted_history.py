"""Backward played through on the mirror: what history a gradient gets that was itself recorded.

With ``create_graph`` the server records how it computes gradients. The derived facts tell the steps, so the mirror can
take the same steps without values: whether a gradient requires grad, what it depends on, the names of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from gradwire_protocol.derivatives import DerivativeFacts, leaves
from gradwire_protocol.errors import GradwireError, GraphError
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.table import TABLE, Kind, Op

from ..graph.graph_mirror import AccumulateGrad, Edge, Node, edge_now, edge_of
from ..graph.node_hooks import NodeHooks
from ..graph.node_signature import NodeSignature
from ..graph.recorded_call import entry_of
from ..graph.save_policy import KEPT, MISSING, Saved, executed
from ..tensor.tensor import NO_GRAD, Tensor

CONSTANT: Final = ()
"""A gradient that is there and depends on nothing. ``None`` is one that is not there, an edge one with a history."""


class KnownGradients(tuple[Any, ...]):
    """A gradient (an edge, or ``CONSTANT``) whose memory is known: the program may write to it, and nodes keep it."""

    memory: Saved

    @staticmethod
    def of(tensor: Tensor) -> KnownGradients:
        """The gradient that a tensor is."""
        found = KnownGradients(edge_of(tensor) or CONSTANT)
        cell = tensor._cell()
        found.memory = cell, cell[0], 0, tensor._id, tensor._form
        return found

    @staticmethod
    def constant(described: Meta) -> KnownGradients:
        """A gradient in new memory that depends on nothing."""
        found = KnownGradients()
        found.memory = [0], 0, -1, 0, described
        return found


Gradient = Edge | tuple[()] | KnownGradients | None
Histories = dict[Node, list[Gradient]]
"""What arrives at nodes, by output."""
_LISTS: Final = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
Input = tuple[Edge | None, Saved | None]
"""An operand of a step: where gradients for it go, and the memory it lies in, where a write could change that."""


class PredictedNode(Node):
    """A node of a gradient's own history, which the facts tell of. ``memory`` is what its result lies in. ``operands``
    are the memories of its operands: what it keeps of them, a write must not change.
    """

    __slots__ = ("memory",)

    told = True

    def __init__(
        self, told: str, edges: Iterable[Edge | None], outs: tuple[Meta, ...], operands: Sequence[Saved | None] = ()
    ) -> None:
        letters, _, name = told.partition(":")
        op = TABLE.get(letters)
        if not name:
            name = (op.grad_fn if op is not None else None) or letters
        super().__init__(NodeSignature(name, outs, op=op), tuple(edges))
        views = _is_view(told) and bool(operands)
        self.memory: Saved | None = operands[0] if views else ([0], 0, -1, 0, outs[0])
        if op is not None and op.grad_fn is not None:
            keeping = entry_of(op).keeping
            if len(self.edges) == len(keeping.at):
                at, results = keeping.places(self.edges, None)
                memories = dict(zip(keeping.at, operands, strict=False))
                kept = [_at_operand(memories.get(i), i) for i in at]
                self.saved = (*kept, *(self.memory if i == 0 and self.memory is not None else KEPT for i in results))
            if op.underivable is not None:
                self.saved = (MISSING,)


def _is_view(told: str) -> bool:
    """Whether the result of a step lies in the memory of what it is made of."""
    op = TABLE.get(told.partition(":")[0])
    return op is not None and op.view


def _at_operand(memory: Saved | None, at: int) -> Saved:
    """What is kept of an operand that lies in this memory."""
    if memory is None:
        return KEPT
    cell, _, _, number, described = memory
    if not cell:
        raise GraphError("a gradient made in inference mode cannot be saved for the next derivative: clone it outside")
    return cell, cell[0], at, number, described


def play(
    roots: list[Any], gradients: list[Any], nodes: list[Node], targets: list[Edge] | None
) -> tuple[list[Gradient], Histories]:
    """The gradients at the targets, in order; and by node what arrives there, for leaves and where it is retained."""
    pending: dict[Node, list[Gradient]] = {}
    for root, gradient in zip(roots, gradients, strict=True):
        edge = edge_of(root)
        assert edge is not None
        _deliver(pending, edge, begin(root, gradient))
    ran = set(executed(nodes, None if targets is None else [e[0] for e in targets]))
    leading = ran | {e[0] for e in targets or ()}
    if len(roots) == 1:
        leading.update(pending)
    wanted = {e[0] for e in targets or ()}
    arrivals: Histories = {}
    for node in sorted(nodes, key=_last_first):
        arrived = pending.pop(node, None)
        if arrived is None:
            continue
        if node not in leading and targets is not None:
            continue
        if node in wanted or node.retained or isinstance(node, AccumulateGrad):
            arrivals[node] = arrived
        if node not in ran:
            continue
        needed = [e is not None and (targets is None or e[0] in leading) for e in node.edges]
        for edge, gradient in zip(node.edges, step(node, arrived, needed), strict=True):
            if edge is not None and gradient is not None:
                _deliver(pending, edge, gradient)
    found = [_at(arrivals.get(node), slot) for node, slot in targets or ()]
    return found, arrivals


def begin(root: Tensor, gradient: Tensor | None) -> Gradient:
    """The gradient that backward starts with at a root."""
    if gradient is None:
        return CONSTANT
    if gradient.dtype is root.dtype:
        return KnownGradients.of(gradient)
    edge = edge_of(gradient)
    return CONSTANT if edge is None else (PredictedNode("to", (edge,), (root._form,)), 0)


def accumulated(leaf: Tensor, gradient: Gradient) -> Gradient:
    """The history of a leaf's ``grad`` once this gradient is added to it."""
    if gradient is None:
        return _of_grad(leaf)
    if leaf._grad_state == NO_GRAD:
        return (PredictedNode(_first_name(leaf), (gradient,), (leaf._form,)), 0) if gradient else CONSTANT
    return added(_of_grad(leaf), gradient, leaf._form)


def _first_name(leaf: Tensor) -> str:
    return "clone:CopyBackwards" if leaf.is_leaf else "clone"


def added(first: Gradient, second: Gradient, described: Meta) -> Gradient:
    """The history of a sum of two gradients."""
    if first is None or second is None:
        return second if first is None else first
    if first == CONSTANT and second == CONSTANT:
        return KnownGradients.constant(described)
    return PredictedNode("add", (first or None, second or None), (described,)), 0


def _of_grad(leaf: Tensor) -> Gradient:
    if leaf._grad_proxy is not None:
        return edge_of(leaf._grad_proxy) or CONSTANT
    return leaf._grad_history or CONSTANT


def attach(tensor: Tensor, gradient: Gradient) -> Any:
    """Give a proxy for a gradient its history. Returns the gradient: where a leaf was passed on, that leaf."""
    if not tensor.dtype.carries_gradient:
        return tensor
    if isinstance(gradient, KnownGradients) and gradient.memory[2] >= 0 and not gradient.memory[0]:
        tensor._inference = True
    if not gradient:
        if isinstance(gradient, KnownGradients) and gradient.memory[2] < 0:
            tensor._versions = gradient.memory[0]
        return tensor
    node, slot = gradient
    if isinstance(node, AccumulateGrad):
        return node.variable
    tensor._node, tensor._slot = node, slot
    if isinstance(node, PredictedNode) and node.memory is not None and node.memory[2] < 0:
        tensor._versions = node.memory[0]
    return tensor


def _deliver(pending: dict[Node, list[Gradient]], edge: Edge, gradient: Gradient) -> None:
    node, slot = edge
    arrived = pending.get(node)
    if arrived is None:
        arrived = pending[node] = [None] * max(len(node.outs), slot + 1)
    arrived[slot] = added(arrived[slot], gradient, node.outs[slot] if slot < len(node.outs) else node.outs[0])


def _at(arrived: list[Gradient] | None, slot: int) -> Gradient:
    return arrived[slot] if arrived is not None and slot < len(arrived) else None


def _last_first(node: Node) -> float:
    return float("inf") if isinstance(node, AccumulateGrad) else -node.seq


# One node


def step(node: Node, arrived: list[Gradient], needed: list[bool]) -> list[Gradient]:
    """The gradients that a node's derivative makes of those that arrived, one per edge."""
    if node.inner is not None:
        return _through_slice(node, node.inner, arrived, needed)
    return _by_facts(node, arrived, needed, node.part)


def _by_facts(node: Node, arrived: list[Gradient], needed: list[bool], part: NodeHooks | None) -> list[Gradient]:
    op = node.recipe.entry.op if node.recipe is not None else node.signature.op
    facts = entry_of(op).keeping.facts if op is not None else None
    if op is None or facts is None:
        return _anything(node, arrived, needed)
    if len(arrived) == 1 and arrived[0] is None:
        return [None] * len(node.edges)
    again = part is not None and (part.region is not None or part.packed is not None)
    return _Play(node, op, facts, arrived, () if again else node.saved or ()).all(needed)


def _anything(node: Node, arrived: list[Gradient], needed: list[bool]) -> list[Gradient]:
    """What nothing is known of may depend on all there is."""
    inputs = [a for a in arrived if a] + [e for e in node.edges if e is not None]
    return [(PredictedNode(f":{node.label}", inputs, (_out(e),)), 0) if need and e is not None else None
            for e, need in zip(node.edges, needed, strict=True)]  # fmt: skip


def _out(edge: Edge) -> Meta:
    node, slot = edge
    return node.outs[slot] if slot < len(node.outs) else node.outs[0]


def _through_slice(node: Node, inner: Node, arrived: list[Gradient], needed: list[bool]) -> list[Gradient]:
    """A base's gradient less the part that was written to; that part goes to the operands of the write."""
    gradient = arrived[0]
    if gradient is None:
        return [None] * len(node.edges)
    part: Gradient = (PredictedNode("as_strided", (gradient,), inner.outs), 0) if gradient else CONSTANT
    found = _by_facts(inner, [part], [True, *needed[1:]], node.part)
    first: Gradient = None
    if needed[0]:
        replaced = found[0]
        first = CONSTANT
        if gradient or replaced:
            first = PredictedNode("as_strided_scatter", (gradient or None, replaced or None), node.outs), 0
    return [first, *found[1:]]


class _Play:
    """The steps of one node's derivative, which uses what the node has ``saved``."""

    def __init__(
        self, node: Node, op: Op, facts: DerivativeFacts, arrived: list[Gradient], saved: tuple[Saved, ...]
    ) -> None:
        self.node = node
        self.op = op
        self.facts = facts
        self.arrived = arrived
        self.recipe = node.recipe
        self.memories: dict[int, list[Saved]] = {}
        for entry in saved:
            if entry[0] is not None and entry is not MISSING:
                self.memories.setdefault(entry[2], []).append(entry)
        self.places: list[tuple[str, int, int | None]] = []
        self.edges: dict[str, list[Edge | None]] = {}
        keeping = entry_of(op).keeping
        at = 0
        for position in keeping.at:
            name = op.params[position].name
            count, listed = 1, op.params[position].kind in _LISTS
            if listed:
                count = len(self.recipe.described[position] or ()) if self.recipe is not None else 0
            self.edges[name] = list(node.edges[at : at + count])
            self.places.extend((name, position, k if listed else None) for k in range(count))
            at += count
        self.fits = at == len(node.edges)
        asked = (op.params[i].name for i in keeping.numbers)
        self.numbers = dict(zip(asked, node.numbers, strict=False))

    def all(self, needed: list[bool]) -> list[Gradient]:
        if not self.fits:
            return _anything(self.node, self.arrived, needed)
        gradients: list[Gradient] = [None] * len(needed)
        for k in sorted(range(len(needed)), key=self._turn):
            if needed[k]:
                gradients[k] = self._one(*self.places[k])
        return gradients

    def _turn(self, k: int) -> str:
        """PyTorch takes operands in the order of their names, and a later backward goes through the nodes made here
        last first: hooks see that order."""
        name, edge = self.places[k][0], self.node.edges[k]
        if self.op.name == "matmul" and name == "other" and edge is not None and len(_out(edge).shape) == 1:
            return "vec"  # as mv and dot name it
        return name

    def _one(self, name: str, position: int, item: int | None) -> Gradient:
        if self.recipe is None:
            # Of a gradient's gradient the facts are not all known: it may depend on whatever any case depends on.
            return self._replayed(self._likeliest(self.facts.outcomes(name)), name, item, None)
        described = self.recipe.described
        outs = self.node.outs
        outcome = self.facts.outcome(name, self.op, described, outs, self.numbers)
        operand = described[position] if item is None else described[position][item]
        gradient = self._replayed(outcome, name, item, operand)
        if name in self.facts.spread or type(outcome) is str:
            gradient = _fitted(gradient, operand, outs[0])
        return gradient

    def _likeliest(self, outcomes: list[Any]) -> Any:
        """The outcome that uses the most of what there is, and nothing that there is not."""
        there = [{leaf for leaf in leaves(o) if leaf not in self.edges or any(self.edges[leaf])} for o in outcomes]
        every = set().union(*there)
        whole = [o for o, used in zip(outcomes, there, strict=True) if used == every]
        sound = [o for o in whole if set(leaves(o)) <= every]
        if whole:
            return min(sound or whole, key=len) if type((sound or whole)[0]) is list else whole[0]
        last = max((o for o in outcomes if type(o) is list and o), key=len)[-1][0]
        return [[last, *sorted(every)]]

    def _replayed(self, outcome: Any, name: str, item: int | None, operand: Meta | None) -> Gradient:
        if type(outcome) is str:
            return self._passed(outcome, name, item)
        outs = (operand if operand is not None else self.node.outs[0],)
        made: list[Input] = []
        undefined: set[Any] = {f"grad{slot}" for slot, gradient in enumerate(self.arrived) if gradient is None}
        for told, *inputs in outcome:
            sources = [i[0] if type(i) is list else i for i in inputs if i is not None]
            defined = [i for i in sources if i not in undefined]
            if len(defined) < len(sources):
                if not defined or (told.partition(":")[0] in _PRODUCTS and len(sources) == 2):
                    undefined.add(len(made))
                    made.append(_NOTHING)
                    continue
                if told in _SUMS and len(sources) == 2:  # the other one is the gradient
                    told, inputs = ":", defined
            operands: list[Input] = []
            for i in inputs:
                if type(i) is str:
                    operands.extend(self._leaf(i, name, item))
                elif type(i) is list:
                    edge = made[i[0]][0]
                    operands.append((None if edge is None else (edge[0], i[1]), None))
                else:
                    operands.append((None, None) if i is None else made[i])
            if told == ":":
                made.append(operands[0])
            elif any(edge is not None for edge, _ in operands):
                node = PredictedNode(told, [edge for edge, _ in operands], outs, [memory for _, memory in operands])
                made.append(((node, 0), node.memory))
            else:
                made.append((None, operands[0][1] if _is_view(told) else None))
        return (made[-1][0] if made else None) or KnownGradients.constant(outs[0])

    def _passed(self, leaf: str, name: str, item: int | None) -> Gradient:
        """The gradient that is a leaf."""
        if leaf == "grad0":
            return self.arrived[0] or CONSTANT if not isinstance(self.arrived[0], KnownGradients) else self.arrived[0]
        found = self._leaf(leaf, name, item)
        return (found[0][0] if found else None) or CONSTANT

    def _leaf(self, leaf: str, name: str, item: int | None) -> list[Input]:
        if leaf == "grads":
            return [_arriving(a) for a in self.arrived]
        if leaf[-1] in ".!":
            listed = self.edges.get(leaf[:-1], [])
            memories = self._memories(leaf[:-1], len(listed))
            listed = [edge_now(edge, memory) for edge, memory in zip(listed, memories, strict=True)]
            same = leaf[:-1] == name
            if leaf[-1] == ".":
                return (
                    [(listed[item], memories[item])] if same and item is not None and item < len(listed) else [_NOTHING]
                )
            return [(e, memories[k]) for k, e in enumerate(listed) if not same or k != item]
        if leaf in self.edges:
            memory = self._memories(leaf, 1)[0]
            return [(edge_now(self.edges[leaf][0], memory), memory)]
        if leaf in self.op.positions:  # an operand that no gradient flows to
            return [(None, self._memories(leaf, 1)[0])]
        number = int(leaf.lstrip("gradesult") or 0) if leaf[-1].isdigit() else 0
        if leaf.startswith("grad"):
            return [_arriving(self.arrived[number]) if number < len(self.arrived) else _NOTHING]
        outs = self.node.outs
        carries = number < len(outs) and outs[number].dtype.carries_gradient
        kept = self.memories.get(-1 - number)
        return [((self.node, number) if carries else None, kept[0] if kept else None)]

    def _memories(self, name: str, count: int) -> list[Saved | None]:
        """The memories of an operand, or of the tensors of a list: none where not all are known."""
        found = self.memories.get(self.op.positions[name], [])
        return list(found) if len(found) == count else [None] * count


_NOTHING: Final[Input] = (None, None)
_PRODUCTS: Final = frozenset({"mul", "div", "matmul", "linalg_solve_triangular"})
_SUMS: Final = frozenset({"add", "sub"})
"""Steps of two operands whose result is undefined with one of them, and those that the other one is the result of."""


def _arriving(gradient: Gradient) -> Input:
    """A gradient as an operand."""
    if isinstance(gradient, KnownGradients):
        return (gradient[0], gradient[1]) if gradient else None, gradient.memory
    if not gradient:
        return _NOTHING
    node = gradient[0]
    return gradient, node.memory if isinstance(node, PredictedNode) and gradient[1] == 0 else None


def _fitted(gradient: Gradient, operand: Any, out: Meta) -> Gradient:
    """A gradient in the shape and dtype of the result, brought to those of the operand."""
    if not gradient or type(operand) is not Meta:
        return gradient
    if operand.known and out.known and operand.shape != out.shape:
        gradient = PredictedNode(f"sum_to_size:{_sum_name(out, operand)}", (gradient,), (operand,)), 0
    if operand.dtype is not out.dtype:
        if out.dtype.is_complex and not operand.dtype.is_complex:
            gradient = PredictedNode("real", (gradient,), (operand,)), 0
            if out.dtype.to_real() is operand.dtype:
                return gradient
        gradient = PredictedNode("to", (gradient,), (operand,)), 0
    return gradient


def _sum_name(out: Meta, operand: Meta) -> str:
    op = TABLE["sum_to_size"]
    try:
        found = op.infer([meta(out.shape, out.dtype, out.device), tuple(operand.shape)])
    except GradwireError:
        return op.grad_fn or op.name
    return found.grad_fn or op.grad_fn or op.name


__all__ = ["CONSTANT", "Gradient", "PredictedNode", "accumulated", "added", "attach", "begin", "play", "step"]
