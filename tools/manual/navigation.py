"""The sections of the manual, from ``docs/navigation.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.documents import REPOSITORY

FILE: Final = REPOSITORY / "docs" / "navigation.toml"
GENERATED: Final = ("api/index", "ops/index", "http-api", "commands")
"""Pages of the manual that no file of the repository is."""


@dataclass(frozen=True)
class Section:
    """A section: its title, and pages as paths in the manual without ending, in order."""

    title: str
    pages: tuple[str, ...]


@dataclass(frozen=True)
class Navigation:
    """The sections, and the files outside of docs/ that the manual has as pages, by the path that they get."""

    sections: tuple[Section, ...]
    elsewhere: dict[str, Path]


def written() -> set[str]:
    """The pages of docs/, without ending. The op table is there as pages of its own."""
    docs = REPOSITORY / "docs"
    found = {path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md")}
    return found - {"index", "ops"}


def navigation() -> Navigation:
    """The sections. Pages of docs/ that the file does not name are the last ones of its ``others`` section.

    Raises:
        ValueError: for a page that does not exist, or that is named twice.
    """
    declared: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    elsewhere = {page: REPOSITORY / path for page, path in declared["elsewhere"].items()}
    named = [page for section in declared["section"] for page in section["pages"]]
    known = written() | set(GENERATED) | set(elsewhere)
    missing = [page for page in named if page not in known] + [p for p, path in elsewhere.items() if not path.is_file()]
    twice = sorted({page for page in named if named.count(page) > 1})
    if missing or twice:
        raise ValueError(f"{FILE.name}: no such pages: {missing}; named twice: {twice}")
    others = sorted(written() - set(named))
    return Navigation(
        tuple(
            Section(each["title"], (*each["pages"], *(others if each.get("others") else ())))
            for each in declared["section"]
        ),
        elsewhere,
    )
