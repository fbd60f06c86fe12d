"""Expressions of the table, written in C++: constants become the arithmetic type ``A``, functions those of CUDA."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import cache
from typing import Final

from ...numerics.expressions import FUNCTIONS

# Where CUDA's function is named otherwise; all others keep their name.
_CALLS: Final[dict[str, str]] = {"abs": "fabs", "maximum": "larger<A>", "minimum": "smaller<A>"}

_BINARY: Final[dict[type[ast.operator], str]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


@cache
def parsed(text: str) -> ast.expr:
    """The syntax tree of an expression."""
    return ast.parse(text, mode="eval").body


@cache
def names_in(text: str) -> tuple[str, ...]:
    """The parameters that an expression reads, each once, in order."""
    found = [node.id for node in ast.walk(parsed(text)) if isinstance(node, ast.Name) and node.id not in FUNCTIONS]
    return tuple(dict.fromkeys(found))


@cache
def is_truth(text: str) -> bool:
    """Whether the expression gives a truth value."""
    return isinstance(parsed(text), ast.Compare)


def in_cuda(text: str, variables: Mapping[str, str]) -> str:
    """The expression in C++, over the variables that stand for its parameters.

    Raises:
        ValueError: for what the language has no word for.
    """
    return _write(parsed(text), variables)


def constant(value: float) -> str:
    """A number of the arithmetic type. Python's text of a float is exact, and C++ reads it as a double."""
    if math.isinf(value) or value != value:
        raise ValueError(f"{value} is no constant of an expression")
    return f"A({float(value)!r})"


def _write(node: ast.expr, variables: Mapping[str, str]) -> str:
    if isinstance(node, ast.Name):
        return variables[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return constant(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"(-{_write(node.operand, variables)})"
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return f"({_write(node.left, variables)} {_BINARY[type(node.op)]} {_write(node.right, variables)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _write(node.left, variables), _write(node.comparators[0], variables)
        return f"({left} {_COMPARED[type(node.ops[0])]} {right})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        arguments = [_write(each, variables) for each in node.args]
        if node.func.id == "where":
            return "({} ? A({}) : A({}))".format(*arguments)
        if node.func.id == "reciprocal":
            return f"(A(1) / {arguments[0]})"
        return f"{_CALLS.get(node.func.id, node.func.id)}({', '.join(arguments)})"
    raise ValueError(f"{ast.unparse(node)!r} is not in the language of expressions")
