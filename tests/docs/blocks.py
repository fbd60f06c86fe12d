"""The output that comments in code blocks of Markdown pages announce.

A comment after a ``print(...)``, and comments on the lines that follow at once, are its expected output, up to
whitespace; ``...`` in it matches anything::

    print(loss.item() < 0.01)  # True
    print(x.grad)
    # tensor([[1., 2.],
    #         [3., 4.]])
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass


@dataclass(frozen=True)
class Expectation:
    """A statement between two lines, and the text that it should print."""

    first: int
    last: int
    text: str

    def agrees(self, printed: str) -> bool:
        """Whether the text is that, up to whitespace and ``...``."""
        pattern = ".*".join(re.escape(part) for part in squeeze(self.text).split("..."))
        return re.fullmatch(pattern, squeeze(printed)) is not None


def squeeze(text: str) -> str:
    """A text with each run of whitespace as one blank."""
    return " ".join(text.split())


def expectations(program: str) -> list[Expectation]:
    """What the prints of a program should print."""
    comments, alone = {}, set()
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("#").strip()
            if not token.line[: token.start[1]].strip():
                alone.add(token.start[0])
    found = []
    for statement in ast.walk(ast.parse(program)):
        if isinstance(statement, ast.stmt) and _is_print(statement):
            last = following = statement.end_lineno or statement.lineno
            told = [comments[last]] if last in comments else []
            while (following := following + 1) in alone:
                told.append(comments[following])
            if told:
                found.append(Expectation(statement.lineno, last, "\n".join(told)))
    return sorted(found, key=lambda expected: expected.first)


def _is_print(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
