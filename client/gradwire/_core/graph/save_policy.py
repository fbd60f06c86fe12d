"""What recorded operations keep for backward, as far as a client must know: which memory, and at which version.

No tensor is kept alive by it, and it is looked at before a backward is recorded. So what PyTorch finds out while it
runs backward, gradwire tells at the line that calls it: a graph that was freed, a tensor that was changed in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.derivatives import DerivativeFacts, facts_of
from gradwire_protocol.errors import GraphError, Unsupported
from gradwire_protocol.meta import Meta
from gradwire_protocol.overlap import repeats
from gradwire_protocol.table import Kind, Op

from ..context.call_sites import spell_line
from ..context.handles import Handle

if TYPE_CHECKING:
    from .graph_mirror import Node
    from .recorded_call import RecordedCall

Saved = tuple[Any, int, int, int, Any]
"""The version cell of the memory (``None`` where no write matters), the version, the position of the operand (below 0,
-1 - the number of the result), the tensor's id, its meta."""

KEPT: Saved = (None, 0, 0, 0, None)
"""Something that is kept where no write changes it."""
MISSING: Final[Saved] = ([1], 0, 0, 0, None)
"""Stands among what is kept by a node without derivative: memory that is never at the version that was kept."""
NO_TENSOR: Final = frozenset({bool, int, float, complex, list, type(None)})
"""Types of arguments that are kept as they are."""
_LISTS: Final = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
Places = tuple[tuple[int, ...], tuple[int, ...]]
"""The positions of the operands that are kept, and the numbers of the results."""


class SavePolicy:
    """What the derivative of one op keeps, depending on which operands receive a gradient.

    Attributes:
        at: positions of the parameters that gradients flow to.
        numbers: positions of the parameters whose value, if a number, decides how the derivative goes.
        whole: what is kept whichever operands receive a gradient; ``None`` where that matters.
        wrapped: positions of the parameters whose numbers PyTorch makes tensors of, so that they count as kept.
    """

    __slots__ = ("_op", "at", "facts", "numbers", "whole", "wrapped")

    def __init__(self, op: Op, differentiable: tuple[int, ...]) -> None:
        self._op = op
        self.facts: DerivativeFacts | None = facts_of(op)
        self.at = differentiable
        self.whole: Places | None = None
        saves = self.facts.saves if self.facts is not None else {}
        if "" in saves or not saves or len(self.at) < 2 or any(op.params[i].kind in _LISTS for i in self.at):
            self.whole = self._sorted([name for names in saves.values() for name in names])
        self.wrapped = frozenset([op.positions[name] for name in op.wrapped])
        asked = self.facts.numbers if self.facts is not None else ()
        self.numbers = tuple([i for i, parameter in enumerate(op.params) if parameter.name in asked])

    def places(self, edges: tuple[Any, ...], recipe: RecordedCall | None) -> Places:
        """The positions of the operands that are kept, and the numbers of the results: ``whole``, if that is set."""
        if self.whole is not None:
            return self.whole
        key = (edges[0] is None) + 2 * (edges[1] is None) if len(edges) == 2 else tuple([e is None for e in edges])
        if recipe is None:
            return self._sorted(self._needed(edges, None))
        found = recipe.kept.get(key)
        if found is None:
            found = recipe.kept[key] = self._sorted(self._needed(edges, recipe.described))
        return found

    def _needed(self, edges: tuple[Any, ...], described: Sequence[Any] | None) -> list[str]:
        """As PyTorch: what several gradients need, and results, are kept whichever of the tensors require grad."""
        saves = self.facts.saves if self.facts is not None else {}
        uses = Counter(name for names in saves.values() for name in names)
        found: list[str] = []
        for at, edge in zip(self.at, edges, strict=True):
            tensor = described is None or type(described[at]) is Meta
            names = saves.get(self._op.params[at].name, ())
            always = [name for name in names if tensor and (uses[name] > 1 or name not in self._op.positions)]
            found.extend(always if edge is None else names)
        return found

    def _sorted(self, names: Iterable[str]) -> Places:
        unique = dict.fromkeys(names)
        positions = self._op.positions
        return (
            tuple([positions[n] for n in unique if n in positions]),
            tuple([int(n.removeprefix("result") or 0) for n in unique if n not in positions]),
        )

    def held(self, places: Places, values: Sequence[Any], overwritten: Any = KEPT) -> tuple[Saved, ...]:
        """What a node keeps of its operands. What is about to be overwritten is kept as a copy.

        Raises:
            GraphError: for a tensor made in inference mode.
        """
        if len(places[0]) == 1:
            at = places[0][0]
            value = values[at]
            if type(value) not in NO_TENSOR and value is not overwritten:
                cell = value._versions or value._kept_cell()
                return ((cell, cell[0], at, value._id, value._form),)
        saved: list[Saved] = []
        for at in places[0]:
            value = values[at]
            if type(value) is list or type(value) is tuple:
                saved.extend([_watched(item, at) for item in value if item is not None])
            elif value is overwritten:
                saved.append(KEPT)
            elif hasattr(value, "_form"):
                cell = value._versions or value._kept_cell()
                saved.append((cell, cell[0], at, value._id, value._form))
            elif at in self.wrapped and value is not None:
                saved.append(KEPT)
        return tuple(saved)

    def refuse_underived(self, values: Sequence[Any]) -> None:
        """Check that no gradient is wanted by an operand that there is no derivative by.

        Raises:
            GraphError: when one is.
        """
        for i in self._op.underived_at:
            value = values[i]
            if hasattr(value, "_form") and value.requires_grad:
                raise self._op.without_derivative(i, value._form)

    def keep_numbers(self, node: Node, values: list[Any]) -> None:
        """Note the numbers that decide how the derivative goes."""
        node.numbers = self.numbers_of(values)

    def numbers_of(self, values: list[Any]) -> tuple[Any, ...]:
        """Those numbers; ``None`` for a tensor in the place of one."""
        return tuple([value if type(value := values[i]) in NO_TENSOR else None for i in self.numbers])

    @staticmethod
    def keep_results(node: Node, places: Places, results: Sequence[Handle]) -> None:
        """Note what a node keeps of its results. Those beyond what the program gets stay on the server."""
        kept = [_watched(results[i], -1 - i) if i < len(results) else KEPT for i in places[1]]
        node.saved = (*(node.saved or ()), *kept)


def _watched(tensor: Handle, at: int) -> Saved:
    cell = tensor._versions or tensor._kept_cell()
    return cell, cell[0], at, tensor._id, tensor._form


def refuse_derivative(node: Node) -> None:
    """Note that backward cannot go through a node, if gradients would have to flow where its op has no derivative."""
    recipe = node.recipe
    assert recipe is not None
    _, operands = recipe.missing
    op = recipe.entry.op
    named = [op.params[i].name for i in recipe.entry.differentiable]
    if not operands or any(e is not None and name in operands for name, e in zip(named, node.edges, strict=False)):
        node.saved = (*(node.saved or ()), MISSING)


def _check_derivative(node: Node, leading: set[Node] | None) -> None:
    """Refuse a node without derivative, unless no gradient is wanted where it has none."""
    if node.recipe is None:
        op = node.signature.op
        assert op is not None
        why, operands = op.underivable, ()
    else:
        entry = node.recipe.entry
        op, (why, operands) = entry.op, node.recipe.missing
        if operands and leading is not None:
            named = zip(entry.differentiable, node.edges, strict=False)
            if not any(e is not None and e[0] in leading and op.params[i].name in operands for i, e in named):
                return
    text = f"{op.name}: {why}; {describe(node)} is on the way of the gradients"
    # An op that never has a derivative raises NotImplementedError in PyTorch, but where its node is called
    # NotImplemented; one that has none for these arguments a RuntimeError.
    never = op.underivable is not None and op.grad_fn != "NotImplemented"
    raise Unsupported(text) if operands or op.internal or never else GraphError(text)


def check(nodes: Sequence[Node], session: Any, targets: Sequence[Node] | None = None) -> None:
    """Check that backward can go through these nodes, in this order, to the targets (``None``: to all leaves).

    Raises:
        GraphError: for a node that was freed, or that kept a tensor which was changed in place since, or whose op has
            no derivative.
        Unsupported: where it lacks the derivative by an operand, or PyTorch has a node for the op without one.
    """
    detached = session.detached
    for outer in nodes:
        node = outer.inner or outer
        if node.saved is None:
            raise GraphError(
                f"an earlier backward went through {describe(node)} and freed what it had kept: pass "
                "retain_graph=True there to go through it again"
            )
        if outer is not node and outer.edges[0] is not None and repeats(node.outs[0]):
            raise GraphError(
                f"{describe(node)} wrote to an expanded tensor: which of its elements stayed in memory is not "
                "known, so there is no gradient for what was there before. Clone the tensor before it is written to"
            )
        if outer.part is not None and (outer.part.region is not None or outer.part.packed):
            continue  # it is computed again, or unpacked, from what the memory holds then
        if node.part is not None and node.part.region is not None:
            continue  # what it needs is computed again
        for cell, version, at, number, meta in node.saved:
            if detached and at >= 0 and detached.get(number, 0) > node.seq:
                raise GraphError(
                    f"{describe(node)} keeps {_what(node, at, number, meta, session)}, for backward; it was "
                    "detached in place since. Use detach(), which returns another tensor"
                )
            if cell is not None and cell[0] != version:
                if cell is MISSING[0]:
                    _check_derivative(node, None if targets is None else {*nodes, *targets})
                    continue
                raise GraphError(_changed(node, cell, version, _what(node, at, number, meta, session)))


def executed(nodes: list[Node], targets: Iterable[Node] | None, including: bool = False) -> list[Node]:
    """Those of the nodes whose derivative will run, in that order; with targets, only on the way to them, and the
    targets themselves where they are to be included."""
    inner = [node for node in nodes if node.edges]
    inner.sort(key=_seq)
    if targets is not None:
        leading = set(targets)
        found = []
        for node in inner:
            if any(edge is not None and edge[0] in leading for edge in node.edges):
                leading.add(node)
                found.append(node)
            elif including and node in leading:
                found.append(node)
        inner = found
    inner.reverse()
    return inner


def free(nodes: Iterable[Node]) -> None:
    """Note that backward went through these nodes, and that nothing is kept for another time."""
    for node in nodes:
        node.free()


def _seq(node: Node) -> float:
    return node.seq


def describe(node: Node) -> str:
    """A node for the text of an error: its name, its op, and the line that recorded it."""
    op = f" ({node.recipe.entry.op.name})" if node.recipe is not None else ""
    return f"{node.label}{op}" + (f", recorded at {spell_line(node.line)}," if node.line is not None else "")


def _what(node: Node, at: int, number: int, meta: Any, session: Any) -> str:
    name = next((name for name, held in session.names.items() if held == number), None)
    op = node.recipe.entry.op if node.recipe is not None else node.signature.op
    assert op is not None
    if at < 0:
        place = "its result" if op.results == 1 else f"its result {-1 - at}"
    else:
        place = f"its operand {op.params[at].name!r}"
    return f"{place}, {f'the tensor named {name!r}' if name is not None else f'a {meta!r} tensor'}"


def _changed(node: Node, cell: list[Any], version: int, what: str) -> str:
    how = f"{cell[1]} changed it in place at {spell_line(cell[2])}" if len(cell) > 1 else "it was changed in place"
    return (
        f"{describe(node)} keeps {what}, for backward; {how} (it is at version {cell[0]}, and was kept at "
        f"{version}). Use the operation that is not in place, or clone the tensor first"
    )
