"""Cells of notebooks by their numbers, whatever names their code has; terminals get text."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import gradwire as torch
from gradwire._core.context.call_sites import near_file, shown_file, spell_call, spell_line, spell_place
from gradwire.profiler import round_trips

CELL = "/tmp/ipykernel_17/12345.py"


@pytest.fixture
def kernel(monkeypatch) -> Any:
    """A shell that has run a cell: what of IPython is asked."""
    shell = SimpleNamespace(
        compile=SimpleNamespace(format_code_name=lambda name: ("Cell", "In[7]") if name == CELL else None),
        display_formatter=SimpleNamespace(active_types=["text/plain", "text/html"]),
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, __file__="/ipython.py"))
    return shell


def test_without_ipython_a_file_is_a_file(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert shown_file(CELL) == CELL and shown_file("<ipython-input-3-ab>") == "<ipython-input-3-ab>"


@pytest.mark.parametrize(
    ("name", "shown"),
    [(CELL, "cell 7"), ("/home/a/train.py", "/home/a/train.py"), ("<ipython-input-3-0a1b>", "cell 3"),
     ("/tmp/ipython-input-12-998.py", "cell 12"), ("<stdin>", "<stdin>")],
)  # fmt: skip
def test_a_cell_has_the_number_that_it_was_run_with(kernel, name, shown) -> None:
    assert shown_file(name) == shown


def test_a_shell_of_an_older_ipython_and_none_that_runs_are_borne(kernel, monkeypatch) -> None:
    del kernel.compile.format_code_name
    assert (shown_file(CELL), shown_file("<ipython-input-3-0a1b>")) == (CELL, "cell 3")
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert shown_file(CELL) == CELL
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    assert shown_file(CELL) == CELL


def test_places_are_spelled_as_people_say_them() -> None:
    assert spell_place("cell 3", 2) == "cell 3, line 2" and spell_place("/a/b.py", 2) == "/a/b.py:2"
    assert spell_place("cell 3.py", 2) == "cell 3.py:2"
    assert spell_call("cell 3", 2, "f") == "cell 3, line 2: f" and spell_call("b.py", 2, "f") == "b.py(2): f"
    assert near_file("cell 3") == "cell 3"
    assert spell_line(None) == "an unknown line"


def test_a_report_names_the_cell(kernel, session) -> None:
    code = compile("\nx.item()", CELL, "exec")
    with round_trips() as waited:
        exec(code, {"x": torch.ones(())})  # noqa: S102
    (line,) = waited.lines
    assert (line.file, line.line) == ("cell 7", 2)
    assert "cell 7, line 2" in waited.report().text(200)


def test_a_terminal_gets_text_alone(kernel, round_trips) -> None:
    tensor = torch.ones(3)
    assert "text/html" in tensor._repr_mimebundle_()
    kernel.display_formatter.active_types = ["text/plain"]
    round_trips()
    assert tensor._repr_mimebundle_() == {}
    assert round_trips() == 0
