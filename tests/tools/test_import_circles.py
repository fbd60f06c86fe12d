"""``make lint`` finds circles of imports, including those that close inside functions and for types only."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.import_circles import Imports


@pytest.fixture
def package(tmp_path: Path):
    """Writes a package from its files' texts."""

    def write(**files: str) -> Imports:
        root = tmp_path / "package"
        for name, text in {"__init__": "", **files}.items():
            path = root / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Imports.of(root)

    return write


def test_a_circle_of_four_files_is_refused(package) -> None:
    imports = package(
        a="from .b import f",
        b="def f():\n    from . import c",
        c="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .d import g",
        d="import package.a",
    )
    assert list(imports.circles()) == [["package.a", "package.b", "package.c", "package.d"]]
    assert (imports.local, imports.typing) == (1, 1)


def test_a_circle_of_three_files_is_allowed(package) -> None:
    assert not list(package(a="from .b import f", b="from .c import f", c="from .a import f").circles())


def test_a_circle_between_folders_is_refused(package) -> None:
    imports = package(
        one__in__a="from ..two.b import f", one__in__c="", two__in__b="", two__in__d="from ..one import c"
    )
    assert list(imports.circles()) == [["package.one", "package.two"]]


def test_a_folder_and_its_subfolder_may_import_each_other(package) -> None:
    assert not list(package(a="from .inner.b import f", inner__in__b="from ..c import f", c="").circles())
