"""Derived pages show the tables, and a stale page is detected. ``make lint`` checks freshness itself."""

from __future__ import annotations

import json
import shutil

import pytest
from tools import derive
from typer.testing import CliRunner

from gradwire_protocol.errors import BY_CODE
from gradwire_protocol.table import TABLE
from gradwire_server.routes.ops import encoded
from gradwire_server.settings.settings import Settings, variable


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the pages in it."""
    folder = tmp_path_factory.mktemp("derived")
    done = run("--folder", str(folder))
    assert done.exit_code == 0, done.output
    return folder


def run(*arguments: str):
    return CliRunner().invoke(derive.app, list(arguments))


def test_every_op_has_its_place_in_the_reference(written) -> None:
    page = (written / "ops.md").read_text()
    for op in TABLE.values():
        if op.internal:
            assert f"### {op.name}\n" not in page
        elif op.base is None:
            assert f"### {op.name}\n" in page
            assert op.signature in page
        else:
            assert f"in place: `{op.name}`" in page


def test_links_of_the_reference_lead_somewhere(written) -> None:
    page = (written / "ops.md").read_text()
    headings = [line.lstrip("# ") for line in page.splitlines() if line.startswith("#")]
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert len(anchors) == len(headings)
    for family, members in derive.families().items():
        assert f"(#the-{family}-family)" in page
        assert f"the-{family}-family" in anchors
        assert anchors >= {op.name.lower() for op in members}


def test_the_json_is_what_the_server_answers(written) -> None:
    assert json.loads((written / "ops.json").read_text()) == json.loads(encoded()[0])


def test_every_error_and_every_setting_is_listed(written) -> None:
    errors, settings = (written / "errors.md").read_text(), (written / "settings.md").read_text()
    for code, cls in BY_CODE.items():
        assert f"| `{code}` | `{cls.__name__}` |" in errors
    for name, field in Settings.model_fields.items():
        assert f"| `{variable(name)}` |" in settings
        assert field.description, f"{name} has no description"


def test_tables_have_as_many_cells_in_every_row(written) -> None:
    for name in ("errors.md", "settings.md"):
        rows = [line for line in (written / name).read_text().splitlines() if line.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) == 1


def test_writing_twice_changes_nothing(written) -> None:
    before = {path.name: path.read_bytes() for path in written.iterdir()}
    assert run("--folder", str(written)).output == ""
    assert {path.name: path.read_bytes() for path in written.iterdir()} == before


def test_a_stale_page_is_named_and_left_alone(written, tmp_path) -> None:
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    (tmp_path / "errors.md").write_text("changed by hand")
    (tmp_path / "ops.json").unlink()
    done = run("--check", "--folder", str(tmp_path))
    assert done.exit_code == 1
    assert "docs/ops.json, docs/errors.md" in done.output
    assert (tmp_path / "errors.md").read_text() == "changed by hand"


def test_fresh_pages_pass(written) -> None:
    assert run("--check", "--folder", str(written)).exit_code == 0
