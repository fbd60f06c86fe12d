"""``python -m tools.typed_documents``: mypy --strict over the examples and the Python blocks of the Markdown pages.

The programs in ``examples/pytorch`` import ``torch``; they are checked as they run, with gradwire in its place.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Final

from . import documents
from .documents import REPOSITORY, pages, script

PACKAGES: Final = (REPOSITORY / "client", REPOSITORY / "protocol")
_TORCH: Final = re.compile(r"^(\s*)(?:import torch$|(import|from) torch(?=[. ]))", re.MULTILINE)
_PLACE: Final = re.compile(r"^(\w+)\.py(?=:\d+)", re.MULTILINE)


def with_gradwire(program: str) -> str:
    """A program for PyTorch with gradwire in its place, line by line."""
    return _TORCH.sub(lambda m: f"{m[1]}{m[2]} gradwire" if m[2] else f"{m[1]}import gradwire as torch", program)


def sources() -> Iterator[tuple[str, Path, str]]:
    """The programs to check: name, the file that each comes from, text. Lines have the numbers that they have there."""
    for page in pages():
        for program in documents.programs(page):
            yield f"{page.stem.replace('-', '_')}_{program[0].line}", page, script(program)
    for example in sorted((REPOSITORY / "examples").rglob("*.py")):  # under their names, by which some import others
        yield example.stem, example, with_gradwire(example.read_text(encoding="utf-8"))


def shown(path: Path) -> str:
    """A path as messages name it."""
    return str(path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path.name)


def check(programs: Iterable[tuple[str, Path, str]]) -> tuple[int, str]:
    """mypy's exit status for programs such as :func:`sources` gives, and its messages with places in their files."""
    with TemporaryDirectory() as folder:
        origins = {}
        for name, origin, text in programs:
            origins[name] = shown(origin)
            Path(folder, f"{name}.py").write_text(text, encoding="utf-8")
        command = [
            sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=",
            "--disable-error-code=import-untyped", f"--cache-dir={REPOSITORY / '.mypy_cache' / 'documents'}",
            *(f"{name}.py" for name in origins),
        ]  # fmt: skip
        environment = os.environ | {"MYPYPATH": os.pathsep.join(map(str, PACKAGES))}
        done = run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, _PLACE.sub(lambda m: origins.get(m[1], m[0]), done.stdout + done.stderr)


if __name__ == "__main__":
    status, messages = check(sources())
    print(messages, end="")
    sys.exit(status)
