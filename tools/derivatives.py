"""Traces the engine's derivatives: what each saves, and the steps that each gradient is made of.

Every sample of ``tests/samples`` is called once with all its tensors requiring grad, and its derivative is run on
gradients that require grad, too. The history of what comes out is what ``gradwire_protocol.derivatives`` describes.
Where it differs between samples, conditions that tell them apart are looked for.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

import gradwire_engine.ops  # noqa: F401  (fills the registry)
from gradwire_engine.backward import operand_metas, unfitted
from gradwire_engine.engine import Engine
from gradwire_engine.registry import ROWS, Row, When, row
from gradwire_engine.tape import AccumulateGrad, Node, edge_of
from gradwire_engine.tensor import Tensor
from gradwire_protocol import dtypes
from gradwire_protocol.derivatives import Condition, conditions
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.table import Kind, Op

DTYPES: Final = ("float64", "complex128")
SEED: Final = 1
MOST_STEPS: Final = 16
DEEPEST: Final = 8
SHAPES: Final = frozenset({"dims", "shape"})
FORMULAS: Final = frozenset({"p"})
"""Integers that choose between formulas. All others say where, or how many: a difference between samples has another
cause."""


class Case(NamedTuple):
    """How the gradient by one operand came about in one call."""

    held: frozenset[Condition]
    outcome: str
    spread: bool
    constant: frozenset[str]


@cache
def derivatives_json() -> str:
    """The facts of every op that has a derivative, one op a line."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = _all_cases()
    lines = []
    for name in sorted(ROWS):
        entry = row(name)
        if entry.op.grad_fn is None or entry.op.base is not None:
            continue
        if entry.composite is not None:
            lines.append(f'"{name}": {json.dumps(_composite(entry))}')
        if not entry.has_derivative:
            continue
        told = {"saves": _saves(entry), "gradients": {}, "spread": []}
        for parameter in (entry.op.params[i].name for i in entry.differentiable):
            found = cases.get((name, parameter))
            if found:
                found = _generalised(found)
                told["gradients"][parameter] = _decide(found, _asked(found), DEEPEST)
            elif parameter in entry.rules or entry.joint is not None:
                told["gradients"][parameter] = {"is": _anything(entry)}
            if found is None or any(case.spread for case in found):
                told["spread"].append(parameter)
        lines.append(f'"{name}": {json.dumps(told, ensure_ascii=False)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _saves(entry: Row) -> dict[str, list[str]]:
    if entry.joint is not None:
        return {"": list(entry.saves)}
    if entry.has_lists:
        return {"": list(dict.fromkeys(name for needs, _ in entry.rules.values() for name in needs))}
    told = {p: [name for name in needs if name not in entry.dispensable] for p, (needs, _) in entry.rules.items()}
    return {parameter: names for parameter, names in told.items() if names}


def _composite(entry: Row) -> dict[str, Any]:
    """Of an op made of others: it may keep and depend on all its operands, but for a bias, which is only added, and
    for what the op says itself."""
    operands = [entry.op.params[i].name for i in entry.differentiable]
    gradients: dict[str, Any] = {operand: {"is": _anything(entry)} for operand in operands}
    for operand, used in (entry.uses or {}).items():
        if isinstance(used, When):
            condition = ["is", used.parameter, used.value]
            gradients[operand] = [condition, _made_of(entry, used.then), _made_of(entry, used.otherwise)]
        else:
            gradients[operand] = _made_of(entry, used)
    inner = f"result{entry.op.results}"  # stands for what the inner ops made: something is kept that no write reaches
    kept = [o for o in operands if o != "bias"] if entry.keeps is None else [*entry.keeps, inner]
    return {"saves": {"": kept}, "gradients": gradients, "spread": []}


def _made_of(entry: Row, used: Sequence[str]) -> dict[str, Any]:
    return {"is": [[f":{entry.op.grad_fn}", "grads", *used]]}


def _anything(entry: Row) -> Any:
    """Of a derivative that no sample reaches, or that is not traced: the gradient may depend on all there is."""
    operands = [entry.op.params[i].name for i in entry.differentiable]
    return [[f":{entry.op.grad_fn}", "grads", *operands]]


# Running samples


def _all_cases() -> dict[tuple[str, str], list[Case]]:
    from tests.samples import load

    engine = Engine()
    found: dict[tuple[str, str], list[Case]] = {}
    for name, declared in sorted(load().items()):
        if not row(name).has_derivative:
            continue
        for samples in declared:
            for dtype in DTYPES:
                if dtype in samples.dtypes:
                    for sample in samples.draw(dtype, SEED):
                        for parameter, case in _trace(engine, name, sample):
                            found.setdefault((name, parameter), []).append(case)
    return found


def _trace(engine: Engine, name: str, sample: Any) -> Iterator[tuple[str, Case]]:
    """The cases of one sample; none for a sample that is meant to fail, or that has no history."""
    entry = row(name)
    op = entry.op
    engine.grad_enabled = True
    try:
        given = {k: _given(engine, v) for k, v in sample.kwargs.items()}
        values = op.bind([_given(engine, a) for a in sample.args], given)
        leaves = _leaves(op, values)
        if op.mutates is not None and isinstance(values[0], Tensor):
            values[0] = engine.call("clone", values[0])
        begin = values[0].grad_fn if op.mutates is not None and isinstance(values[0], Tensor) else None
        underived = [values[i] for i in op.underived_at if isinstance(values[i], Tensor)]
        for operand in underived:
            operand.requires_grad_flag = False
        results = engine.run(entry, list(values))
    except GradwireError:
        return
    for operand in underived:  # the op refuses it; the tracing of its gradients sees it so
        operand.requires_grad_flag = True
    results = results if isinstance(results, tuple) else (results,)
    node = next((r.grad_fn for r in results if isinstance(r, Tensor) and isinstance(r.grad_fn, Node)), None)
    if node is None or node.row is not entry:
        return
    grads = [_gradient(engine, out) for out in node.outs]
    for i, gradient in enumerate(grads):
        if gradient is not None:
            leaves[id(gradient)] = (f"grad{i}", None)
    needed = [edge is not None for edge in node.edges]
    try:
        raw = unfitted(node, engine, list(grads), needed)
    except GradwireError:
        return
    numbers = {p.name: v for p, v in zip(op.params, values, strict=True) if p.kind in (Kind.SCALAR, Kind.OPERAND)}
    held = frozenset(conditions(op, node.values, node.outs, numbers))
    constant = frozenset(op.params[i].name for i in entry.differentiable if _is_constant(values[i]))
    for target, need, gradient, operand in zip(entry.targets(node), needed, raw, operand_metas(node), strict=True):
        if need and (target[1] is None or operand.numel):  # an empty vector among others tells nothing of them
            told = None
            if gradient is not None:
                told = _Telling(node, begin, leaves, target, op.results is None).tell(gradient)
            spread = gradient is not None and gradient.shape != operand.shape
            yield target[0], Case(held, json.dumps(told), spread, constant)


def _given(engine: Engine, value: Any) -> Any:
    """A sample's argument as the engine takes it. A tensor that is given twice becomes two."""
    import torch

    if isinstance(value, torch.Tensor):
        made = engine.from_numpy(value.detach().resolve_conj().numpy())
        if value.dim() and not value.is_contiguous() and value.numel():
            made = engine.call("clone", made)
        made.requires_grad_flag = made.dtype.category >= dtypes.FLOATING
        return made
    if isinstance(value, torch.dtype):
        return dtypes.BY_NAME[str(value).removeprefix("torch.")]
    if isinstance(value, (list, tuple)):
        return type(value)(_given(engine, v) for v in value)
    return value


def _is_constant(value: Any) -> bool:
    """Whether an operand cannot require grad, whatever the call."""
    if isinstance(value, (list, tuple)):
        return False
    return not isinstance(value, Tensor) or value.dtype.category < dtypes.FLOATING


def _leaves(op: Op, values: list[Any]) -> dict[int, tuple[str, int | None]]:
    found: dict[int, tuple[str, int | None]] = {}
    for parameter, value in zip(op.params, values, strict=True):
        if isinstance(value, Tensor):
            found[id(value)] = (parameter.name, None)
        elif isinstance(value, (list, tuple)):
            found.update({id(v): (parameter.name, k) for k, v in enumerate(value) if isinstance(v, Tensor)})
    return found


def _gradient(engine: Engine, out: Any) -> Tensor | None:
    if out.dtype.category < dtypes.FLOATING:
        return None
    made: Tensor = engine.call("ones", out.shape, dtype=out.dtype)
    made.requires_grad_flag = True
    return made


class _Telling:
    """The history of one gradient as steps."""

    def __init__(self, node: Node, begin: Any, leaves: Any, target: tuple[str, int | None], many: bool) -> None:
        self.node = node
        self.begin = begin
        self.leaves = leaves
        self.target = target
        self.many = many
        self.steps: list[list[Any]] = []
        self.numbers: dict[int, int] = {}

    def tell(self, gradient: Tensor) -> Any:
        edge = edge_of(gradient)
        if edge is None:
            return []
        last = self._input(edge)
        if type(last) is str:
            return last
        if type(last) is list or last != len(self.steps) - 1:
            self.steps.append([":", last])
        if len(self.steps) <= MOST_STEPS:
            return self.steps
        used = dict.fromkeys(i for step in self.steps for i in step[1:] if type(i) is str)
        return [[self.steps[-1][0], *sorted(used)]]

    def _input(self, edge: Any) -> Any:
        """The leaf or step that an edge leads to. Steps come after all that they are made of."""
        stack = [edge[0]]
        while stack:
            node = stack[-1]
            if self._leaf(node, 0) is not None or id(node) in self.numbers:
                stack.pop()
                continue
            inner = [e[0] for e in node.edges if e is not None]
            waiting = [n for n in inner if self._leaf(n, 0) is None and id(n) not in self.numbers]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            step = [_told_name(node), *self._grouped([None if e is None else self._known(e) for e in node.edges])]
            if step not in self.steps:
                self.steps.append(step)
            self.numbers[id(node)] = self.steps.index(step)
        return self._known(edge)

    def _known(self, edge: Any) -> Any:
        leaf = self._leaf(*edge)
        if leaf is not None:
            return leaf
        number = self.numbers[id(edge[0])]
        return number if edge[1] == 0 else [number, edge[1]]

    def _leaf(self, node: Any, slot: int) -> str | None:
        if node is self.node:
            return f"result{slot}"
        if node is self.begin:
            return self.node.row.op.params[0].name
        if type(node) is not AccumulateGrad:
            return None
        name, item = self.leaves[id(node.leaf)]
        if item is None:
            return str(name)
        return f"{name}." if (name, item) == self.target else f"{name}!"

    def _grouped(self, inputs: list[Any]) -> list[Any]:
        """Inputs whose number differs from call to call, as one."""
        grads = [i for i in inputs if type(i) is str and i.startswith("grad")]
        if self.many and len(grads) > 1:
            inputs = ["grads" if i == "grad0" else i for i in inputs if i not in grads or i == "grad0"]
        found: list[Any] = []
        for i in inputs:
            if not (type(i) is str and i.endswith("!") and i in found):
                found.append(i)
        return found


def _told_name(node: Any) -> str:
    """The op; with the node's name, where that is not the op's."""
    entry = getattr(node, "row", None)
    if entry is None:
        return f":{node.name}"
    op = entry.op
    return str(op.name) if node.name == op.grad_fn else f"{op.name}:{node.name}"


# Telling the samples apart


def _asked(cases: list[Case]) -> list[Condition]:
    """The conditions that hold in some of the cases, in a fixed order."""
    found = {c for case in cases for c in case.held if c[0] != "is" or type(c[2]) is not int or c[1] in FORMULAS}
    return sorted((c for c in found if not all(c in case.held for case in cases)), key=repr)


def _generalised(cases: list[Case]) -> list[Case]:
    """The cases, each with the fullest outcome that it is a part of.

    Where an operand was a number, an outcome lacks what depends on it; others tell what that would be.
    """
    whole = [o for o, _ in Counter(c.outcome for c in cases if not c.constant).most_common()]
    found = []
    for case in cases:
        if case.constant and case.outcome not in whole:
            outcome = json.loads(case.outcome)
            fuller = next((o for o in whole if _pruned(json.loads(o), case.constant) == outcome), case.outcome)
            case = case._replace(outcome=fuller)
        found.append(case)
    return found


def _pruned(outcome: Any, constant: frozenset[str]) -> Any:
    """An outcome without what depends on constants alone."""
    if type(outcome) is not list:
        return [] if outcome in constant else outcome
    kept: list[list[Any]] = []
    numbers: dict[int, int] = {}
    for at, (name, *inputs) in enumerate(outcome):
        moved: list[Any] = []
        for i in inputs:
            if type(i) is int:
                moved.append(numbers.get(i))
            elif type(i) is list:
                moved.append([numbers[i[0]], i[1]] if i[0] in numbers else None)
            else:
                moved.append(None if i in constant else i)
        if any(i is not None for i in moved):
            numbers[at] = len(kept)
            kept.append([name, *moved])
    return kept if len(outcome) - 1 in numbers else []


def _decide(cases: list[Case], asked: list[Condition], depth: int) -> Any:
    """A tree of the conditions that best tell the outcomes apart; where none does, the commonest outcome.

    What concerns shapes is asked for last: samples have few of them, and another cause tells more of other calls.
    """
    counted = Counter(case.outcome for case in cases)
    best = None
    if len(counted) > 1 and depth:
        best = _best(cases, [c for c in asked if c[0] not in SHAPES]) or _best(cases, asked)
    if best is None:
        most = max(counted.values())
        return {"is": json.loads(next(o for o in sorted(counted) if counted[o] == most))}
    condition, yes, no = best
    first, second = _decide(yes, asked, depth - 1), _decide(no, asked, depth - 1)
    return first if first == second else [list(condition), first, second]


def _best(cases: list[Case], asked: list[Condition]) -> tuple[Condition, list[Case], list[Case]] | None:
    """The condition that leaves the least of a mixture, with the cases in which it holds, and the others."""
    best, least = None, _mixture(cases)
    for condition in asked:
        yes = [case for case in cases if condition in case.held]
        no = [case for case in cases if condition not in case.held]
        if yes and no and (left := _mixture(yes) + _mixture(no)) < least - 1e-9:
            best, least = (condition, yes, no), left
    return best


def _mixture(cases: list[Case]) -> float:
    """How many pairs of cases differ in outcome, per case."""
    counted = Counter(case.outcome for case in cases)
    return len(cases) - sum(n * n for n in counted.values()) / len(cases)
