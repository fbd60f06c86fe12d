"""The graph that a frame leaves behind and nobody may ever look at, as one object until somebody does.

After a training step the loss is still there, and with it every node of the step, spent. A plan makes one
:class:`LazyNodes` of them: it counts as the nodes that it stands for, lives as long as they would, and becomes them
when ``Tensor._grad_fn`` is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from .effects import Effects, LeafTemplate, NodeTemplate, SavedTemplate, SlicesTemplate, TensorTemplate
from .program import New, Number

FEWEST: Final = 3
MOST_ROOTS: Final = 8
"""Tensors with a graph of their own; of more of them nothing is folded."""


@dataclass(slots=True)
class LazyNodeTemplate:
    """Which of a frame's new nodes are folded.

    Attributes:
        groups: numbers of templates, in the order in which the nodes were made. A group has edges to earlier groups.
        at: the group, and the place there, by number of the template.
    """

    groups: list[list[int]] = field(default_factory=list)
    at: dict[int, tuple[int, int]] = field(default_factory=dict)


def fold(effects: Effects) -> LazyNodeTemplate:
    """Nodes that only tensors of the frame lead to, and that keep no tensors for backward, by the tensors that do. So
    the nodes of a group would have gone at one time."""
    templates, folds = effects.templates, LazyNodeTemplate()
    nodes = {n: t for n, t in enumerate(templates) if type(t) in (NodeTemplate, SlicesTemplate)}

    def behind(number: int) -> Iterable[int]:
        template = nodes[number]
        found = [edge[0] for edge in template.edges if edge is not None]
        if type(template) is SlicesTemplate:
            found.append(template.inner)
        return [ref.number for ref in found if type(ref) is New and ref.number in nodes]

    made = [n for n, t in nodes.items() if type(t) is SlicesTemplate or t.watchers is not None or _keeps_tensors(t)]
    for _, _, value in effects.changes:
        refs = value.values() if type(value) is dict else (value,)
        made += [ref.number for ref in refs if type(ref) is New and ref.number in nodes]
    at_once = _closure(made, behind, set())
    roots = []
    for template in templates:
        if type(template) is TensorTemplate:
            node = template.referring["_grad_fn"]
            if type(node) is New and node.number not in at_once:
                roots.append(node.number)
    if len(nodes) - len(at_once) < FEWEST or len(roots) > MOST_ROOTS:
        return folds
    reached = dict.fromkeys(nodes, 0)
    for i, root in enumerate(roots):
        for number in _closure([root], behind, at_once):
            reached[number] |= 1 << i
    groups: dict[int, list[int]] = {}
    for number in sorted(nodes, key=lambda n: nodes[n].seq):
        if number not in at_once and reached[number]:
            groups.setdefault(reached[number], []).append(number)
    for mask in sorted(groups, key=lambda mask: -mask.bit_count()):
        for i, number in enumerate(groups[mask]):
            folds.at[number] = len(folds.groups), i
        folds.groups.append(groups[mask])
    return folds


def _keeps_tensors(template: NodeTemplate) -> bool:
    entries = [e for entry in (template.saved or {}).values() for e in (entry if type(entry) is list else (entry,))]
    return any(type(entry) is SavedTemplate for entry in entries)


def _closure(numbers: Iterable[int], behind: Callable[[int], Iterable[int]], without: set[int]) -> set[int]:
    found: set[int] = set()
    waiting = list(numbers)
    while waiting:
        number = waiting.pop()
        if number not in found and number not in without:
            found.add(number)
            waiting.extend(behind(number))
    return found


class Writer:
    """Writes the function that makes the nodes of one group, and notes what it has to be given.

    Args:
        spell, constant: how the plan names things, and what is there for every frame.
    """

    def __init__(
        self,
        templates: list[Any],
        folds: LazyNodeTemplate,
        group: int,
        spell: Callable[[Any], str],
        constant: Callable[[Any], str],
    ) -> None:
        self._templates = templates
        self._folds = folds
        self._group = group
        self._spell = spell
        self._constant = constant
        self._given: dict[str, str] = {"seq": "seq", "begin": "begin", "account": "account"}
        self._accumulators: dict[int, str] = {}
        self._lines: list[str] = []

    def write(self) -> tuple[list[str], str]:
        """The lines of the function, and the expression that gives the :class:`LazyNodes`."""
        group, numbers = self._group, self._folds.groups[self._group]
        for number in numbers:
            template: NodeTemplate = self._templates[number]
            values = ", ".join([self._value(value) for value in template.values])
            edges = "".join([f"{self._edge(edge)}, " for edge in template.edges])
            position = "0" if template.index is None else f"begin + {template.index}"
            self._lines.append(
                f" n{number} = Node({self._constant(template.name)}, {self._constant(template.row)}, [{values}], "
                f"({edges}), {self._constant(template.outs)}, seq + {template.seq}, account, {position})"
            )
            if template.saved is not None:
                saved = ", ".join([f"{self._constant(n)}: {self._value(e)}" for n, e in template.saved.items()])
                self._lines.append(f" n{number}.saved = {{{saved}}}")
        self._lines.append(f" return [{', '.join([f'n{number}' for number in numbers])}]")
        head = f"def fold{group}({', '.join(self._given.values())}):"
        names = self._constant(tuple([self._templates[number].name for number in numbers]))
        made = f"LazyNodes(fold{group}, ({', '.join(self._given)}), account, {names})"
        return [head, *self._lines], made

    def _from_outside(self, expression: str) -> str:
        return self._given.setdefault(expression, f"x{len(self._given)}")

    def _value(self, value: object) -> str:
        if type(value) is list:
            return f"[{', '.join([self._value(each) for each in value])}]"
        spelled = self._spell(value)
        return self._from_outside(spelled) if type(value) is Number else spelled

    def _edge(self, edge: Any) -> str:
        if edge is None:
            return "None"
        ref, slot = edge
        if type(ref) is New and type(self._templates[ref.number]) is LeafTemplate:
            return f"({self._accumulator(ref.number)}, {slot})"
        there = self._folds.at.get(ref.number) if type(ref) is New else None
        if there is None:
            return f"({self._from_outside(self._spell(ref))}, {slot})"
        if there[0] == self._group:
            return f"(n{ref.number}, {slot})"
        return f"({self._from_outside(f'f{there[0]}')}.at({there[1]}), {slot})"

    def _accumulator(self, number: int) -> str:
        found = self._accumulators.get(number)
        if found is None:
            found = self._accumulators[number] = f"n{number}"
            leaf = self._from_outside(self._spell(self._templates[number].leaf))
            self._lines.append(f" {found} = accumulator({leaf})")
        return found
