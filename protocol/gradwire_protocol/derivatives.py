"""What the derivative of an op saves and how it makes its gradients; the client mirrors the graph from these facts.

They are parsed from the op's declaration (:func:`~gradwire_protocol.table.gradients`) when they are first needed. An
*outcome* describes the gradient by one operand:

============== ==================================================================================================
a leaf         the gradient is that tensor: ``"grad0"`` is the incoming gradient of result 0
a list         steps ``[name, input, ...]`` in order; the last one makes the gradient. An input is the number of a
               step (``[number, output]`` for an output other than the first), a leaf, or ``None`` for a constant.
               An empty list is a gradient that depends on nothing.
============== ==================================================================================================

A leaf is the name of an operand, ``result0`` or ``grad0`` (and so on), or ``"grads"`` for all incoming gradients. In a
list of tensors, ``"tensors."`` is the item whose gradient this is and ``"tensors!"`` all others. Outcomes assume that
every leaf requires grad: a step none of whose inputs does was not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .derivative_expressions import COMPARISONS, Condition, Expressions, operands_of
from .meta import Meta
from .promotion import ScalarKind
from .table import Derivative, Op

_NUMBERS: Final = frozenset({bool, int, float, complex, ScalarKind})
"""What stands for a number in the place of an operand, where a rule sees it and where a node keeps it."""


class DerivativeFacts:
    """The facts of one op.

    Attributes:
        parameters: the operands that gradients flow to.
        saves: by operand, the names of what its gradient needs saved; under ``""``, what is always saved.
        spread: the operands whose gradient is computed in the shape of the result and then summed to their own.
        numbers: the parameters that take numbers whose value a condition uses.
    """

    __slots__ = ("_expressions", "_trees", "numbers", "parameters", "saves", "spread")

    def __init__(self, op: Op, declared: Derivative) -> None:
        every = operands_of(op)
        written, saves, broadcasts = declared
        self._expressions = Expressions(op, dict.fromkeys(every, written) if isinstance(written, str) else written)
        self.parameters = self._expressions.parsed.keys()
        self._trees: dict[str, Any] = {}
        self.saves = self._expressions.saves() if saves is None else _split(saves)
        alike = op.elementwise and len(every) > 1
        self.spread = frozenset(every if broadcasts is True or (alike and not broadcasts) else broadcasts or ())
        self.numbers = self._expressions.numbers()

    def tree(self, parameter: str) -> Any:
        """The outcomes of the gradient by this operand, by condition (:meth:`Expressions.tree`)."""
        found = self._trees.get(parameter)
        if found is None:
            found = self._trees[parameter] = self._expressions.tree(parameter)
        return found

    def outcome(self, parameter: str, op: Op, described: Sequence[Any], outs: Sequence[Meta], numbers: Any) -> Any:
        """The outcome for the gradient by this operand in one call, from the rule's arguments and results."""
        tree = self.tree(parameter)
        while type(tree) is list:
            condition, truth, then, otherwise = tree
            tree = then if holds(condition, op, described, outs, numbers) is truth else otherwise
        return tree["is"]

    def outcomes(self, parameter: str) -> list[Any]:
        """All outcomes for the gradient by this operand."""
        return _outcomes(self.tree(parameter))


def leaves(outcome: Any) -> list[str]:
    """The leaves that an outcome is made of, each once."""
    if type(outcome) is str:
        return [outcome]
    return list(dict.fromkeys(i for step in outcome for i in step[1:] if type(i) is str))


def _outcomes(tree: Any) -> list[Any]:
    return [tree["is"]] if type(tree) is dict else _outcomes(tree[2]) + _outcomes(tree[3])


def _split(saves: Mapping[str, str] | str) -> dict[str, list[str]]:
    return {operand: names.split() for operand, names in ({"": saves} if isinstance(saves, str) else saves).items()}


def holds(condition: Condition, op: Op, described: Sequence[Any], outs: Sequence[Meta], numbers: Any) -> bool:
    """Whether a condition holds for a call."""
    what, name, *comparison = condition
    value = described[op.positions[name]]
    if what == "value":
        value = numbers.get(name, value)
        return not isinstance(value, Meta | ScalarKind) and _compares(value, *comparison)
    if what == "is_number":
        return type(value) in _NUMBERS
    if what == "is_complex" and type(value) is tuple:
        return any(type(v) is Meta and v.dtype.is_complex for v in value)
    if type(value) is not Meta:
        return False
    if what == "ndim":
        return _compares(len(value.shape), *comparison)
    if what == "is_complex":
        return value.dtype.is_complex
    if what == "carries_gradient":
        return value.dtype.carries_gradient
    if what == "is_empty":
        return value.known and value.numel == 0
    if what in ("is_square", "is_wide"):
        rows, columns = value.shape[-2:]
        return bool(columns > rows if what == "is_wide" else columns == rows)
    if what == "is_cast":
        return bool(outs) and value.dtype is not outs[0].dtype
    return bool(outs) and value.shape == outs[0].shape


def _compares(value: Any, symbol: str, bound: Any) -> bool:
    if symbol == "==":
        return bool(value == bound)
    return type(value) in (int, float) and COMPARISONS[symbol](value, bound)


_held: dict[str, DerivativeFacts | None] = {}


def facts_of(op: Op) -> DerivativeFacts | None:
    """The facts of an op; an in-place form has those of the op it is made from. ``None`` without a derivative."""
    base = op if op.base is None else op.base
    if base.name not in _held:
        _held[base.name] = None if base.derivative is None else DerivativeFacts(base, base.derivative)
    return _held[base.name]


__all__ = ["DerivativeFacts", "facts_of", "holds", "leaves"]
