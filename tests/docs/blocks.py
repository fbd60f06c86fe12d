"""Code blocks of Markdown pages, and the output that their comments announce.

A comment after a ``print(...)``, and comments on the lines that follow at once, are its expected output, up to
whitespace; ``...`` in it matches anything::

    print(loss.item() < 0.01)  # True
    print(x.grad)
    # tensor([[1., 2.],
    #         [3., 4.]])

A fence with ``no-run`` after the language marks a block that is not run.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^( *)```(\S+)([^\n]*)\n(.*?)^\1```\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code: ``line`` is that of its first line in the page."""

    language: str
    code: str
    line: int


def blocks(page: Path, language: str) -> list[Block]:
    """The blocks of a page in this language that are to be run."""
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        indent, named, rest, code = fence.groups()
        if named == language and "no-run" not in rest.split():
            lines = [line.removeprefix(indent) for line in code.splitlines()]
            found.append(Block(language, "\n".join(lines) + "\n", text[: fence.start()].count("\n") + 2))
    return found


def script(parts: list[Block]) -> str:
    """The blocks as one program, in which each line has the number that it has in the page."""
    lines: list[str] = []
    for part in parts:
        lines += [""] * (part.line - 1 - len(lines))
        lines += part.code.splitlines()
    return "\n".join(lines) + "\n"


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
