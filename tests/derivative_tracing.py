"""Traces the engine's derivatives on the samples: what each gradient is made of, to compare with what is declared.

A sample of ``tests/samples`` is called once with all its tensors requiring grad, and its derivative is run on
gradients that require grad, too. The history of what comes out is what ``@gradients`` declares with an op
(:mod:`gradwire_protocol.derivative_expressions`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

import gradwire_engine.ops  # noqa: F401  (fills the registry)
from gradwire_engine.autograd.backward import operand_metas, unfitted
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import Row, row
from gradwire_engine.autograd.tape import AccumulateGrad, Node, SavedTensor, edge_of
from gradwire_engine.autograd.tensor import Tensor
from gradwire_protocol import dtypes
from gradwire_protocol.derivatives import DerivativeFacts, leaves
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.table import Kind, Op
from tests.samples import load

DTYPES = ("float64", "complex128")
SEED = 1
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


class Case(NamedTuple):
    """How the gradient by one operand came about in one call.

    Attributes:
        parameter: the operand.
        sample: the call.
        described, outs, numbers: what a client knows of it.
        outcome: the steps of the gradient; for an op made of others, the operands that it depends on.
        spread: whether the gradient was computed in another shape than the operand's.
        constant: the operands that cannot require grad in any call like this one.
    """

    parameter: str
    sample: str
    described: list[Any]
    outs: Any
    numbers: dict[str, Any]
    outcome: Any
    spread: bool
    constant: frozenset[str]

    def declared(self, op: Op, facts: DerivativeFacts) -> Any:
        """What is declared of such a call."""
        asked = {name: number for name, number in self.numbers.items() if name in facts.numbers}
        return facts.outcome(self.parameter, op, self.described, self.outs, asked)

    def fits(self, declared: Any) -> bool:
        """Whether a declared outcome is what was traced.

        Of many steps the last one may be declared alone, with all that the others depend on. Where an operand was a
        number, there are no steps that depend on nothing else.
        """
        outcome, constant = self.outcome, self.constant
        if declared == outcome or (constant and _pruned(declared, constant) == outcome):
            return True
        if type(declared) is not list or type(outcome) is not list or len(declared) != 1 or not outcome:
            return False
        return declared[0][0] == outcome[-1][0] and {*leaves(declared)} - constant == {*leaves(outcome)}


def trace(name: str) -> list[Case]:
    """The cases of an op, from all its samples."""
    engine = Engine()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [case for sample in _samples(name) for case in _trace(engine, row(name), sample)]


def trace_composite(name: str) -> Iterator[tuple[Case, set[str]]]:
    """The cases of an op that is made of others, and the operands that these keep. Outcomes tell dependencies only."""
    engine = Engine()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in _samples(name):
            yield from _trace_composite(engine, row(name), sample)


@cache
def _loaded() -> Any:
    return load()


def _samples(name: str) -> Iterator[Any]:
    for samples in _loaded().get(name, ()):
        for dtype in DTYPES:
            if dtype in samples.dtypes:
                yield from samples.draw(dtype, SEED)


def _trace(engine: Engine, entry: Row, sample: Any) -> Iterator[Case]:
    """The cases of one sample; none for a sample that is meant to fail, or that has no history."""
    op = entry.op
    engine.grad_enabled = True
    try:
        values = _bound(engine, op, sample)
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
    needed, raw = _gradients(engine, node, grads)
    numbers, constant = _numbers(op, values), _constant(entry, values)
    targets = entry.targets(node.values)
    for target, need, gradient, operand in zip(targets, needed, raw, operand_metas(node), strict=True):
        if need and (target[1] is None or operand.numel):  # an empty vector among others tells nothing of them
            told = None
            if gradient is not None:
                told = _Telling(node, begin, leaves, target, op.results is None).tell(gradient)
            spread = gradient is not None and gradient.shape != operand.shape
            yield Case(target[0], str(sample), node.values, node.outs, numbers, told, spread, constant)


def _gradients(engine: Engine, node: Node, grads: list[Tensor | None]) -> tuple[list[bool], list[Any]]:
    """What the derivative returns, and for which edges. Where one of them has no derivative, the others are alone."""
    needed = [edge is not None for edge in node.edges]
    try:
        return needed, unfitted(node, engine, list(grads), needed)
    except GradwireError:
        found: list[Any] = [None] * len(needed)
    for at, edge in enumerate(node.edges):
        alone = [at == i and edge is not None for i in range(len(needed))]
        try:
            found[at] = unfitted(node, engine, list(grads), alone)[at]
        except GradwireError:
            needed[at] = False
    return needed, found


def _trace_composite(engine: Engine, entry: Row, sample: Any) -> Iterator[tuple[Case, set[str]]]:
    op = entry.op
    engine.grad_enabled = True
    try:
        values = _bound(engine, op, sample)
        results = engine.run(entry, list(values))
    except GradwireError:
        return
    results = results if isinstance(results, tuple) else (results,)
    roots = [r for r in results if isinstance(r, Tensor) and r.grad_fn is not None]
    named = {id(v): n for n, v in zip(op.positions, values, strict=True) if isinstance(v, Tensor)}
    sources = [v for v in values if isinstance(v, Tensor) and v.requires_grad and named[id(v)] in op.differentiable]
    if not roots or not sources:
        return
    storages = {id(v.storage): named[id(v)] for v in sources}
    kept = {storages[id(s.storage)] for n in _nodes(roots) for s in _saved(n) if id(s.storage) in storages}
    seeds = [_gradient(engine, r) for r in roots]
    found = engine.call("grad", roots, sources, seeds, create_graph=True, allow_unused=True)
    for source, gradient in zip(sources, found, strict=True):
        if gradient is not None:
            nodes = _nodes([gradient])
            leaves = {named[id(n.leaf)] for n in nodes if type(n) is AccumulateGrad and id(n.leaf) in named}
            described = [v.meta if isinstance(v, Tensor) else v for v in values]
            outs = tuple(r.meta for r in results if isinstance(r, Tensor))
            name = named[id(source)]
            yield Case(name, str(sample), described, outs, _numbers(op, values), leaves, False, frozenset()), kept


def _nodes(tensors: list[Tensor]) -> list[Any]:
    """All nodes that the history of the tensors is made of."""
    stack = [edge[0] for t in tensors if (edge := edge_of(t)) is not None]
    seen: dict[int, Any] = {}
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(edge[0] for edge in node.edges if edge is not None)
    return list(seen.values())


def _saved(node: Any) -> Iterator[Tensor]:
    for entry in (getattr(node, "saved", None) or {}).values():
        for item in entry if type(entry) is list else (entry,):
            if type(item) is SavedTensor:
                yield item.tensor


def _bound(engine: Engine, op: Op, sample: Any) -> list[Any]:
    given = {k: _given(engine, v) for k, v in sample.kwargs.items()}
    return op.bind([_given(engine, a) for a in sample.args], given)


def _given(engine: Engine, value: Any) -> Any:
    """A sample's argument as the engine takes it. A tensor that is given twice becomes two."""
    if isinstance(value, torch.Tensor):
        made = engine.from_numpy(value.detach().resolve_conj().numpy())
        if value.dim() and not value.is_contiguous() and value.numel():
            made = engine.call("clone", made)
        made.requires_grad_flag = made.dtype.carries_gradient
        return made
    if isinstance(value, torch.dtype):
        return dtypes.BY_NAME[str(value).removeprefix("torch.")]
    if isinstance(value, (list, tuple)):
        return type(value)(_given(engine, v) for v in value)
    return value


def _numbers(op: Op, values: list[Any]) -> dict[str, Any]:
    kinds = (Kind.SCALAR, Kind.OPERAND)
    return {
        p.name: None if isinstance(v, Tensor) else v for p, v in zip(op.params, values, strict=True) if p.kind in kinds
    }


def _constant(entry: Row, values: list[Any]) -> frozenset[str]:
    return frozenset(entry.op.params[i].name for i in entry.differentiable if _is_constant(values[i]))


def _is_constant(value: Any) -> bool:
    """Whether an operand cannot require grad, whatever the call."""
    if isinstance(value, (list, tuple)):
        return False
    return not isinstance(value, Tensor) or not value.dtype.carries_gradient


def _leaves(op: Op, values: list[Any]) -> dict[int, tuple[str, int | None]]:
    found: dict[int, tuple[str, int | None]] = {}
    for parameter, value in zip(op.params, values, strict=True):
        if isinstance(value, Tensor):
            found[id(value)] = (parameter.name, None)
        elif isinstance(value, (list, tuple)):
            found.update({id(v): (parameter.name, k) for k, v in enumerate(value) if isinstance(v, Tensor)})
    return found


def _gradient(engine: Engine, out: Any) -> Tensor | None:
    if not out.dtype.carries_gradient:
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
        return self.steps

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


# What would be right


def written(op: Op, outcome: Any) -> str:
    """An outcome as the expression that declares it."""
    if type(outcome) is not list:
        return _leaf_text(op, outcome)
    if not outcome:
        return "c"
    uses = Counter(i if type(i) is int else i[0] for _, *inputs in outcome for i in inputs if type(i) in (int, list))
    texts: list[str] = []
    for number, (name, *inputs) in enumerate(outcome):
        texts.append(_step_text(op, name, [_input_text(op, texts, i) for i in inputs], inputs))
        if uses[number] > 1:
            texts[number] = f"(s{number} := {texts[number]})"
            texts = [texts[number] if i == number else text for i, text in enumerate(texts)]
    return texts[-1].removeprefix("(").removesuffix(")") if _enclosed(texts[-1]) else texts[-1]


def _enclosed(text: str) -> bool:
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and at < len(text) - 1:
            return False
    return text.startswith("(")


def _input_text(op: Op, texts: list[str], i: Any) -> str:
    if type(i) is int:
        return texts[i]
    return f"{texts[i[0]]}[{i[1]}]" if type(i) is list else _leaf_text(op, i)


def _step_text(op: Op, name: str, texts: list[str], inputs: list[Any]) -> str:
    if name == ":":
        return texts[0]
    if name in _SYMBOLS and len(inputs) == 2 and inputs[0] is not None:
        return f"({texts[0]} {_SYMBOLS[name]} {texts[1]})"
    if name == "rsub:RsubBackward1":
        return f"(c - {texts[0]})"
    if name == "neg":
        return f"-{texts[0]}"
    name = {"sum:SumBackward1": "sum_dim", "mean:MeanBackward1": "mean_dim"}.get(name, name)
    return f"{name.replace(':', '.')}({', '.join(texts)})"


def _leaf_text(op: Op, leaf: str | None) -> str:
    if leaf is None:
        return "c"
    if leaf.endswith("!"):
        return f"*{leaf[:-1]}"
    short = {"grad0": "grad", "result0": "result"}.get(leaf)
    return short if short is not None and short not in op.positions else leaf.removesuffix(".")
