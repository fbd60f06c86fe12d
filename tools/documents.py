"""Code blocks of the Markdown pages: README.md and docs/ with its folders.

A fence with ``no-run`` after the language marks a block that is neither run nor checked. One with ``output`` is what
the block before it prints, up to whitespace, with ``...`` for anything. A tutorial that needs two machines names its
``no-run`` blocks behind that word; ``tests/docs/test_tutorials.py`` runs these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[1]

_FENCE: Final = re.compile(r"^( *)```(\S+)([^\n]*)\n(.*?)^\1```\s*$", re.MULTILINE | re.DOTALL)
_BEGINS: Final = re.compile(r"^(import|from) (gradwire|torch)\b", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code. ``line`` is that of its first line in the page, ``output`` what it prints, if the page says."""

    language: str
    code: str
    line: int
    output: str | None = None


def pages() -> list[Path]:
    """The pages that have blocks, or may have some."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[Block]:
    """The blocks of a page in this language that are to be run."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    last: Block | None = None
    for fence in _FENCE.finditer(text):
        indent, named, rest, code = fence.groups()
        lines = [line.removeprefix(indent) for line in code.splitlines()]
        if "output" in rest.split():
            if last is not None:
                found[-1] = last = replace(last, output="\n".join(lines))
        elif named == language and "no-run" not in rest.split():
            last = Block(language, "\n".join(lines) + "\n", text[: fence.start()].count("\n") + 2)
            found.append(last)
        else:
            last = None
    return found


def script(parts: list[Block]) -> str:
    """The blocks as one program, in which each line has the number that it has in the page."""
    lines: list[str] = []
    for part in parts:
        lines += [""] * (part.line - 1 - len(lines))
        lines += part.code.splitlines()
    return "\n".join(lines) + "\n"


def programs(page: Path) -> Iterator[list[Block]]:
    """The Python programs of a page, block by block: one that imports gradwire or PyTorch begins a program, others go
    on."""
    program: list[Block] = []
    for block in blocks(page, "python"):
        if program and _BEGINS.search(block.code):
            yield program
            program = []
        program.append(block)
    if program:
        yield program
