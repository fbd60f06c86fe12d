"""Reduces a program that two libraries disagree about to the statements that matter."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from .running import PRELUDE, Program, disagreements


def shrink(program: list[str], disagrees: Callable[[list[str]], bool], most: int = 400) -> list[str]:
    """Delete runs of statements, shorter and shorter ones, while the disagreement persists."""
    size = max(len(program) // 2, 1)
    tries = 0
    while True:
        at, deleted = 0, False
        while at < len(program) and tries < most:
            shorter = program[:at] + program[at + size :]
            tries += 1
            if shorter and disagrees(shorter):
                program, deleted = shorter, True
            else:
                at += size
        if tries >= most or (size == 1 and not deleted):
            return program
        size = max(size // 2, 1)


def smallest(program: Program, found: list[str]) -> Program:
    """A program that disagrees in the way of the first disagreement found."""
    kind = kind_of(found[0])

    def disagrees(statements: list[str]) -> bool:
        again = disagreements(replace(program, statements=statements))
        return bool(again) and kind_of(again[0]) == kind

    return replace(program, statements=shrink(program.statements, disagrees))


def kind_of(line: str) -> str:
    """What differs, without which tensor and where in it."""
    if line.startswith("`"):
        return line[line.rindex("`") :]
    return re.sub(r"\[\d+\]", "[]", line.split(":")[0].split(".", 2)[-1])


def report(program: Program, found: list[str]) -> str:
    """What a failing test says."""
    small = smallest(program, found)
    first = "\n".join(disagreements(small)[:5])
    said = f"torch and gradwire disagree (seed {program.seed}, wait {program.wait})"
    return f"{said}:\n{first}\n\n{script(small.statements)}"


def script(program: list[str]) -> str:
    """The program as a file to run: it prints what is raised, and every tensor in the end."""
    lines = ["import gradwire as torch  # or: import torch", PRELUDE.replace("from torch.", "from gradwire.")]
    for statement in program:
        body = "".join(f"    {line}\n" for line in statement.splitlines())
        lines.append(f"try:\n{body}except Exception as error:\n    print(type(error).__name__, error)")
    lines.append(
        "for name, value in dict(globals()).items():\n    if isinstance(value, torch.Tensor):\n"
        "        print(name, value, value.grad_fn, value.grad, sep='; ')"
    )
    return "\n".join(lines)
