"""The tree of files that Sphinx reads: the pages of docs/ with rewritten links, and the generated ones."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.documents import REPOSITORY

from . import commands, http_api, links, operations, python_api
from .navigation import Navigation, navigation

DOCS: Final = REPOSITORY / "docs"
DATA: Final = (".json", ".svg", ".png")
"""Endings of files of docs/ that pages may link to or show."""
GENERATED: Final = ("api/index.rst", "http-api.md", "commands.md")
"""Pages that the start page leads to, and that are no files of docs/."""
_HEADER: Final = re.compile(r"\A<!--.*?-->\n+", re.DOTALL)


def _home(listed: Navigation) -> str:
    """The start page, and the tree that the sidebar shows."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    for section in listed.sections:
        text += "\n".join([f"\n```{{toctree}}\n:hidden:\n:caption: {section.title}\n", *section.pages, "```\n"])
    return text


def _files(listed: Navigation) -> Iterator[tuple[str, str | Path]]:
    """Every file of the tree: its path, and its text or the file that it is a copy of."""
    pages = {path: path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.suffix in (".md", *DATA)}
    del pages[DOCS / "ops.md"]
    pages |= {path: f"{page}.md" for page, path in listed.elsewhere.items()}
    targets = pages | {DOCS / name: name for name in GENERATED} | {REPOSITORY / "README.md": "index.md"}
    ops = operations.anchors()
    for path, name in pages.items():
        if path.suffix in DATA:
            yield name, path
        else:
            text = _home(listed) if path == DOCS / "index.md" else path.read_text(encoding="utf-8")
            yield name, links.rewritten(_HEADER.sub("", text), path, name.removesuffix(".md"), targets, ops)
    for page, text in operations.pages():
        yield f"{page}.md", text
    for page, text in python_api.pages():
        yield f"{page}.rst", text
    yield "http-api.md", http_api.page()
    yield "commands.md", commands.page()


def write(folder: Path) -> None:
    """Write the tree. Files that are the same keep their times, so that Sphinx reads only the others."""
    wanted = set()
    for name, content in _files(navigation()):
        path = folder / name
        wanted.add(path)
        data = content.read_bytes() if isinstance(content, Path) else content.encode()
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for path in folder.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()


def clear(folder: Path) -> None:
    """Remove a tree."""
    shutil.rmtree(folder, ignore_errors=True)
