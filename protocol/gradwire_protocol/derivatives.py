"""What the engine's derivatives save and are made of, for a client that mirrors the graph.

The facts are traced from the engine by ``python -m tools.derive`` and stand in ``derivatives.json``, which is read at
the first question. An op's gradient by one of its operands is told as an *outcome*:

============== ==================================================================================================
``None``       no gradient flows to this operand
a leaf         the gradient is that tensor: ``"grad0"`` came in for result 0
a list         steps ``[name, input, ...]``, in order, of which the last makes the gradient; an input is the number
               of a step (``[number, output]`` for an output other than the first), a leaf, or ``None`` for what is
               constant. An empty list is a gradient that depends on nothing.
============== ==================================================================================================

A leaf is the name of an operand, ``result0`` or ``grad0`` (and so on), ``"grads"`` for every gradient that came in,
and for a list of tensors ``"tensors."`` for the item in question and ``"tensors!"`` for all others. Every leaf stands
as if it required grad: a step whose inputs do not was not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .meta import Meta
from .promotion import ScalarKind
from .table import Op

FILE: Final = Path(__file__).with_name("derivatives.json")
WRAPPING: Final = frozenset({"mul", "div"})
"""Ops that keep a number among their operands as they keep a tensor: a graph with one cannot be gone through twice."""
_MOST_DIMS: Final = 3
_NUMBERS: Final = frozenset({bool, int, float, complex, ScalarKind})
"""What stands for a number in the place of an operand, where a rule sees it and where a node keeps it."""

Condition = tuple[Any, ...]
"""What a derivative may depend on: ``("dims", "self", 0)``, ``("complex", "other")``, ``("is", "keepdim", True)``."""


class Facts:
    """The facts of one op.

    Attributes:
        saves: per differentiable parameter the names of what its gradient needs saved; under ``""`` what is saved in
            any case.
        gradients: per differentiable parameter a tree of decisions: ``[condition, if so, if not]`` down to
            ``{"is": outcome}``.
        spread: the parameters whose gradient is computed in the shape of the result, and then summed to their own.
        numbers: the parameters whose value a condition asks for, where it is a number.
    """

    __slots__ = ("gradients", "numbers", "saves", "spread")

    def __init__(self, saves: dict[str, list[str]], gradients: dict[str, Any], spread: Sequence[str]) -> None:
        self.saves = saves
        self.gradients = gradients
        self.spread = frozenset(spread)
        self.numbers = frozenset(name for tree in gradients.values() for name in _asked_values(tree))

    def outcome(self, parameter: str, op: Op, described: Sequence[Any], outs: Sequence[Meta], numbers: Any) -> Any:
        """How the gradient by this operand is made in a call, given what its rule saw and gave."""
        tree = self.gradients.get(parameter)
        if tree is None:
            return None
        held = conditions(op, described, outs, numbers) if type(tree) is list else ()
        while type(tree) is list:
            tree = tree[1] if tuple(tree[0]) in held else tree[2]
        return tree["is"]

    def outcomes(self, parameter: str) -> list[Any]:
        """All ways in which the gradient by this operand may be made."""
        tree = self.gradients.get(parameter)
        return [None] if tree is None else _outcomes(tree)


def leaves(outcome: Any) -> list[str]:
    """The leaves that an outcome is made of, each once."""
    if type(outcome) is str:
        return [outcome]
    return list(dict.fromkeys(i for step in outcome or () for i in step[1:] if type(i) is str))


def _outcomes(tree: Any) -> list[Any]:
    return [tree["is"]] if type(tree) is dict else _outcomes(tree[1]) + _outcomes(tree[2])


def _asked_values(tree: Any) -> list[str]:
    if type(tree) is not list:
        return []
    here = [tree[0][1]] if tree[0][0] == "value" else []
    return here + _asked_values(tree[1]) + _asked_values(tree[2])


def conditions(op: Op, described: Sequence[Any], outs: Sequence[Meta], numbers: Any) -> list[Condition]:
    """Every condition that holds for a call, in an order that is always the same."""
    found: list[Condition] = []
    operands = _operands(op)
    for at, (parameter, value) in enumerate(zip(op.params, described, strict=True)):
        name = parameter.name
        if type(value) is Meta:
            if value.dtype.is_complex:
                found.append(("complex", name))
            found.append(("dims", name, min(len(value.shape), _MOST_DIMS)))
            if outs and value.shape == outs[0].shape:
                found.append(("shape", name))
            if value.known and value.numel == 0:
                found.append(("empty", name))
        elif type(value) is tuple and any(type(v) is Meta for v in value):
            if any(type(v) is Meta and v.dtype.is_complex for v in value):
                found.append(("complex", name))
        elif name in numbers and type(numbers[name]) in _NUMBERS:
            found.append(("value", name, _plain(numbers[name])))
        elif value is None or type(value) in (bool, int, float) or (type(value) is str and value.isidentifier()):
            found.append(("is", name, value))
        if at in operands and type(value) in _NUMBERS:
            found.append(("number", name))
    return found


def _operands(op: Op) -> set[int]:
    return {at for at, parameter in enumerate(op.params) if parameter.name in op.differentiable}


def _plain(number: Any) -> Any:
    """The number as JSON has it: numbers that are equal are the same."""
    if type(number) is complex:
        return number.real if number.imag == 0 else None
    return float(number)


_held: dict[str, Facts] = {}


def facts_of(op: Op) -> Facts | None:
    """The facts of an op; an in-place form has those of the op it is made from. ``None`` without a derivative."""
    if not _held:
        for name, row in json.loads(FILE.read_text(encoding="utf-8")).items():
            _held[name] = Facts(**row)
    found = _held.get(op.name)
    return _held.get(op.base.name) if found is None and op.base is not None else found


__all__ = ["FILE", "WRAPPING", "Condition", "Facts", "conditions", "facts_of", "leaves"]
