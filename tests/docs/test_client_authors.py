"""docs/client-authors.md names conformance vectors that exist, and every group of them."""

from __future__ import annotations

import json
import re

import pytest
from tools.documents import REPOSITORY

PAGE = (REPOSITORY / "docs" / "client-authors.md").read_text(encoding="utf-8")
VECTORS = REPOSITORY / "protocol" / "vectors" / "v1"
ROWS = re.findall(r"^\| \d+ \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
FOR_PEOPLE = {"natural"}
"""Groups that a client need not know."""


def named() -> list[str]:
    """The vectors in the table of milestones, by the beginnings of their ids."""
    return [name for row in ROWS for name in re.findall(r"`([^`]+)`", row)]


def test_each_milestone_has_vectors() -> None:
    assert len(ROWS) == len(re.findall(r"^## \d+\. ", PAGE, re.MULTILINE)) == 11
    assert all("`" in row for row in ROWS)


@pytest.mark.skipif(not VECTORS.exists(), reason="this checkout has no conformance vectors")
def test_the_milestones_name_vectors_that_exist_and_all_groups() -> None:
    ids = [vector["id"] for path in VECTORS.rglob("*.json") if path.name != "manifest.json"
           for vector in json.loads(path.read_text(encoding="utf-8"))["vectors"]]  # fmt: skip
    for name in named():
        beginning = name.removesuffix("...")
        assert any(found.startswith(beginning) for found in ids), f"no vector begins with {name}"
    groups = {found.split("/")[0] for found in ids} - FOR_PEOPLE
    assert groups == {name.split("/")[0] for name in named()}
