"""Reads what ``@gradients`` declares: how the gradient by an operand is made of other operations.

An expression is Python that is read and never run::

    @gradients(self="grad * conj(other)", other="grad * conj(self)")

=========================== ==========================================================================================
``grad``, ``grad1``         the incoming gradient of the first result, of the second; ``grads`` is all of them
``self``, ``result``        an operand, a result (``result1``, ...), by its name. Where an operand is called ``grad`` or
                            ``result``, write ``grad0`` and ``result0`` for the others.
``tensors``, ``*tensors``   of a list of tensors the item whose gradient this is, and all others
``c``, a number             whatever cannot require grad
``cos(self)``               an operation with its differentiable operands in order; ``[1]`` behind it is its second
                            result; ``sum.SumBackward1(self)`` also gives the name of its node
``+ - * / **``, ``-self``   the operations of these names; ``1 - self`` is ``rsub``
``a @ b``                   a product of matrices; of batches, if an operand that it is made of has more dimensions
``conj(other)``             is recorded only if its operand is complex
``adjoint(other)``          and the other ``SHORTHANDS`` abbreviate an expression
``(self, weight)``          several inputs of an operation; ``()`` is none
``opaque(self, weight)``    unspecified operations on these and the incoming gradients; ``opaque`` uses every operand
``(s := sigmoid(self))``    names a step: ``s`` is that step in all expressions of the op
``a if test else b``        a test compares the value of an argument (``keepdim``, ``p == 2``, ``dim is None``) or
                            ``self.ndim`` with a constant, or is one of the ``PREDICATES`` of an operand
=========================== ==========================================================================================

Equal steps are one step. A gradient that is ``c`` depends on nothing. Where a test cannot be decided, the client
assumes what is written first.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from .table import TABLE, Kind, Op

Condition = tuple[str, ...] | tuple[str, str, str, Any]
"""What a derivative may depend on: ``("is_complex", "other")``, ``("ndim", "self", "==", 0)``,
``("value", "keepdim", "==", True)``."""

CONSTANT: Final = "c"
PREDICATES: Final = frozenset(
    {"carries_gradient", "is_cast", "is_complex", "is_empty", "is_number", "is_square", "is_wide", "keeps_shape"}
)
"""``is_cast``: its dtype is not the result's; ``is_square``, ``is_wide``: as a matrix; ``keeps_shape``: it has the
shape of the first result; ``is_number``: it is no tensor."""
COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_SYMBOLS: Final[dict[type, str]] = {
    ast.Eq: "==", ast.NotEq: "==", ast.Is: "==", ast.IsNot: "==",
    ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=",
}  # fmt: skip
_OPERATORS: Final[dict[type, str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow:PowBackward0",
}  # fmt: skip
_OVERLOADS: Final = {"sum_dim": "sum:SumBackward1", "mean_dim": "mean:MeanBackward1"}
"""Operations that occur often, under a node's name that is not their usual one."""
SHORTHANDS: Final = {
    "adjoint": "conj(transpose(_))",
    "averaged": "_ / c if reduction == 'mean' else _",
    "restored": "reshape(_) if dim is not None and not keepdim and self.ndim > 0 else _",
    "times_alpha": "_ if alpha == 1 else _ * c",
    "times_beta": "_ if beta == 1 else _ * c",
    "times_value": "_ if value == 1 else _ * c",
}
"""Expressions that occur often, of an argument ``_``."""


class _Expansion(ast.NodeTransformer):
    """Puts what shorthands stand for in their place."""

    argument: ast.expr

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in SHORTHANDS:
            return node
        self.argument = node.args[0]
        expanded: ast.expr = self.visit(_parsed(SHORTHANDS[node.func.id]))
        return expanded

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.argument if node.id == "_" else node


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Undecided(Exception):
    """Which outcome there is depends on a condition that nothing is known of yet."""

    def __init__(self, condition: Condition, first: bool) -> None:
        self.condition = condition
        self.first = first


class Expressions:
    """The expressions of one op, by the operand that the gradient is by."""

    def __init__(self, op: Op, written: Mapping[str, str]) -> None:
        self.op = op
        self.parsed = {name: _Expansion().visit(_parsed(text)) for name, text in written.items()}
        everything = [node for tree in self.parsed.values() for node in ast.walk(tree)]
        self.steps = {node.target.id: node.value for node in everything if isinstance(node, ast.NamedExpr)}

    def tree(self, parameter: str) -> Any:
        """The outcomes of a gradient: ``[condition, truth, if it holds so, if not]`` down to ``{"is": outcome}``, in
        the order in which they are written."""
        return self._tree(self.parsed[parameter], {})

    def _tree(self, expression: ast.expr, known: dict[Condition, bool]) -> Any:
        try:
            return {"is": _Reading(self, known).outcome(expression)}
        except _Undecided as question:
            condition, truth = question.condition, question.first
        then = self._tree(expression, known | {condition: truth})
        otherwise = self._tree(expression, known | {condition: not truth})
        return then if then == otherwise else [condition, truth, then, otherwise]

    def saves(self) -> dict[str, list[str]]:
        """By operand what its gradient mentions, in the order of the parameters, results last."""
        found = {name: self._leaves(tree) for name, tree in self.parsed.items()}
        return {name: leaves for name, leaves in found.items() if leaves}

    def _leaves(self, expression: ast.expr) -> list[str]:
        positions = self.op.positions
        found = {leaf.rstrip(".!") for node in self._operands(expression) for leaf in self._leaf(node)}
        results = sorted([name for name in found if name not in positions and name.startswith("result")])
        if results and self.op.results == 1:
            results = ["result"]
        return [name for name in positions if name in found] + results

    def _leaf(self, node: ast.Name) -> list[str]:
        if node.id == "opaque":
            return operands_of(self.op)
        leaf = leaf_of(self.op, node.id, "")
        return [] if leaf is None else [leaf]

    def _operands(self, expression: ast.expr) -> list[ast.Name]:
        """The names that stand for tensors: not those of operations, and not those in tests."""
        found: list[ast.Name] = []
        pending: list[ast.AST] = [expression]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.IfExp):
                pending += node.body, node.orelse
            elif not isinstance(node, ast.Name):
                pending += node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
            elif node.id in self.steps:
                pending.append(self.steps[node.id])
            else:
                found.append(node)
        return found

    def numbers(self) -> frozenset[str]:
        """The parameters that take numbers, and whose value a test asks for."""
        tests = [node.test for tree in self.parsed.values() for node in ast.walk(tree) if isinstance(node, ast.IfExp)]
        asked = [node.left for test in tests for node in ast.walk(test) if isinstance(node, ast.Compare)]
        return frozenset(n.id for n in asked if isinstance(n, ast.Name) and is_number(self.op, n.id))


def operands_of(op: Op) -> list[str]:
    """The parameters that gradients flow to, in order."""
    return [parameter.name for parameter in op.params if parameter.name in op.differentiable]


def is_number(op: Op, name: str) -> bool:
    """Whether a parameter takes numbers that are data."""
    return op.params[op.positions[name]].kind in (Kind.SCALAR, Kind.OPERAND)


def flattened(inputs: Iterable[Any]) -> Iterator[Any]:
    """The inputs, those in tuples one by one."""
    for made in inputs:
        yield from made if type(made) is tuple else (made,)


def leaf_of(op: Op, name: str, mark: str) -> str | None:
    """The leaf of this name; ``None`` for what is constant. The items of a list are marked."""
    if name in op.positions:
        listed = op.params[op.positions[name]].kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
        return name + mark if listed else name
    if name == CONSTANT:
        return None
    if name in ("grad", "result"):
        return name + "0"
    if name == "grads" or name.rstrip("0123456789") in ("grad", "result"):
        return name
    raise ValueError(f"{op.name}: {name!r} in the declaration of its gradients is no operand, result or step")


class _Reading:
    """One way through an expression: the steps of the gradient where certain conditions hold."""

    def __init__(self, expressions: Expressions, known: dict[Condition, bool]) -> None:
        self.op = expressions.op
        self.named = expressions.steps
        self.known = known
        self.steps: list[list[Any]] = []

    def outcome(self, expression: ast.expr) -> Any:
        made = self.value(expression)
        if made is None:
            return []
        if type(made) is str:
            return made
        if made != len(self.steps) - 1:
            self.steps.append([":", made])
        return self.steps

    def value(self, node: ast.expr) -> Any:
        """What an expression stands for, as an input of a step."""
        match node:
            case ast.Name(name):
                return self.value(self.named[name]) if name in self.named else self._named(name)
            case ast.NamedExpr(value=inner):
                return self.value(inner)
            case ast.Constant():
                return None
            case ast.IfExp():
                return self.value(node.body if self.holds(node.test) else node.orelse)
            case ast.Subscript(inner, ast.Constant(number)):
                return [self.value(inner), number] if number else self.value(inner)
            case ast.UnaryOp(ast.USub(), ast.expr() as inner) if not isinstance(inner, ast.Constant):
                return self._step("neg", self.value(inner))
            case ast.UnaryOp():
                return None
            case ast.BinOp(left, symbol, right):
                return self._operator(left, symbol, right)
            case ast.Call(ast.Name(name), arguments):
                return self._call(name, arguments)
            case ast.Call(ast.Attribute(ast.Name(name), label), arguments):
                usual = TABLE[name].grad_fn == label
                return self._step(name if usual else f"{name}:{label}", *map(self.value, arguments))
            case ast.Tuple(several):
                return tuple(flattened(map(self.value, several)))
            case ast.Starred(ast.Name(name)):
                return leaf_of(self.op, name, "!")
        raise ValueError(f"{self.op.name}: {ast.unparse(node)!r} in the declaration of its gradients is not understood")

    def _named(self, name: str) -> Any:
        return self._call("opaque", None) if name == "opaque" else leaf_of(self.op, name, ".")

    def _operator(self, left: ast.expr, symbol: ast.operator, right: ast.expr) -> Any:
        first, second = self.value(left), self.value(right)
        if isinstance(symbol, ast.MatMult):
            sources = dict.fromkeys(self._sources(first) + self._sources(second))
            batch = any(self._is(("ndim", name, ">", 2), wanted=False) for name in sources)
            return self._step("matmul:UnsafeViewBackward0" if batch else "matmul", first, second)
        if isinstance(symbol, ast.Sub) and first is None:
            return self._step("rsub:RsubBackward1", second, None)
        return self._step(_OPERATORS[type(symbol)], first, second)

    def _call(self, name: str, arguments: list[ast.expr] | None) -> Any:
        if name == "opaque":
            made: Any = operands_of(self.op) if arguments is None else [self.value(a) for a in arguments]
            return self._step(f":{self.op.grad_fn}", "grads", *made)
        assert arguments is not None
        if name == "conj":
            inner = self.value(arguments[0])
            return self._step(name, inner) if self._is_complex(inner) else inner
        return self._step(_OVERLOADS.get(name, name), *map(self.value, arguments))

    def _step(self, name: str, *inputs: Any) -> int:
        step = [name, *flattened(inputs)]
        if step not in self.steps:
            self.steps.append(step)
        return self.steps.index(step)

    # Tests

    def holds(self, test: ast.expr, wanted: bool = True) -> bool:
        """Whether a test holds. ``wanted`` is the answer for which the gradient is what is written first.

        Raises:
            _Undecided: when it depends on a condition that nothing is known of.
        """
        match test:
            case ast.BoolOp(ast.And(), parts):
                return all(self.holds(part, wanted) for part in parts)
            case ast.BoolOp(ast.Or(), parts):
                return any(self.holds(part, wanted) for part in parts)
            case ast.UnaryOp(ast.Not(), inner):
                return not self.holds(inner, not wanted)
            case ast.Name(name):
                return self._is(("value", name, "==", True), wanted)
            case ast.Call(ast.Name(predicate), [ast.Name(name)]) if predicate in PREDICATES:
                return self._is((predicate, name), wanted)
            case ast.Compare(ast.Attribute(ast.Name(name), "ndim") | ast.Name(name), [symbol], [right]):
                what = "value" if isinstance(test.left, ast.Name) else "ndim"
                equal = not isinstance(symbol, ast.NotEq | ast.IsNot)
                return self._is((what, name, _SYMBOLS[type(symbol)], _literal(right)), wanted == equal) == equal
        raise ValueError(f"{self.op.name}: the test {ast.unparse(test)!r} of its gradients is not understood")

    def _is(self, condition: Condition, wanted: bool = True) -> bool:
        found = self.known.get(condition)
        if found is None and condition[2:3] == ("==",):
            found = False if any(held for other, held in self.known.items() if other[:3] == condition[:3]) else None
        if found is None:
            raise _Undecided(condition, wanted)
        return found

    def _is_complex(self, made: Any) -> bool:
        """Whether an operand or step is complex: it is if any operand that it is made of is."""
        if type(made) is int and self.steps[made][0] == "to":
            made = "grad0"
        return any(self._is(("is_complex", name)) for name in self._sources(made))

    def _sources(self, made: Any) -> list[str]:
        if type(made) is list:
            made = made[0]
        if type(made) is int:
            return list(dict.fromkeys(name for inner in self.steps[made][1:] for name in self._sources(inner)))
        if made is None:
            return []
        name = made.rstrip(".!")
        return [name] if name in self.op.positions else operands_of(self.op)


def _literal(node: ast.expr) -> Any:
    text = ast.unparse(node)
    return float(text) if text in ("inf", "-inf") else ast.literal_eval(text)


__all__ = ["COMPARISONS", "CONSTANT", "Condition", "Expressions", "is_number", "operands_of"]
