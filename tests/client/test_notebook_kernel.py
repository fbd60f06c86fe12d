"""What a real Jupyter kernel shows: outputs of one round trip, cells by their numbers, errors without our frames."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from tests.well_formed_html import parsed

CELLS: dict[str, str] = {
    "imports": "import gradwire as torch\nfrom gradwire import nn\nsession = torch.current_session()",
    "tensor": "x = torch.arange(20.0, requires_grad=True)\ny = x * 2\ny",
    "before": "session.synchronize()\nbefore = session.stats()['round_trips']",
    "displayed": "torch.arange(12.0)",
    "after": "session.stats()['round_trips'] - before",
    "print": "print(torch.ones(2))",
    "model": "class Model(nn.Module):\n"
             "    def forward(self, x):\n"
             "        return x @ torch.ones(3, 3)\n"
             "model = Model()\n"
             "model",
    "session": "session",
    "stats": "session.stats()",
    "memory": "session.memory()",
    "explain": "f = torch.compile(lambda a: a + 1)\nf(x), f(x)\nf.explain()",
    "profile": "with torch.profiler.profile(with_stack=True) as recorded:\n"
               "    (x * 3).sum().item()\n"
               "recorded.key_averages(group_by_stack_n=1)",
    "graph": "torch.viz.graph(y.sum())",
    "waits": "session.round_trip_report()",
    "wrong": "def inner(a):\n    return model(a)\ninner(torch.ones(2, 2))",
    "late": "z = torch.linalg.inv(torch.zeros(3, 3))\nw = z + 1",
    "read": "w.sum().item()",
    "failed": "w",
    "fine": "torch.ones(2)",
    "details": "try:\n    w.sum().item()\nexcept torch.KernelError as error:\n    caught = error\n"
               "caught.details['line']",
    "kept": "import traceback\nlen(traceback.extract_tb(caught.__traceback__)) > 3",
    "anomaly": "with torch.autograd.detect_anomaly():\n"
               "    bad = torch.zeros(2, requires_grad=True)\n"
               "    (bad.sqrt() * 0).sum().backward()\n"
               "    bad.grad.tolist()",
    "division": "class Divides(nn.Module):\n    def forward(self, x):\n        return 1 / 0\nDivides()(x)",
    "full": "%env GRADWIRE_TRACEBACK=full\ntorch.ones(2) @ torch.ones(3)",
}  # fmt: skip
NUMBER = {name: number for number, name in enumerate(CELLS, 1)}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Outputs:
    """What the cells of a notebook gave, by their names."""

    def __init__(self, cells: list[Any]) -> None:
        self._cells = dict(zip(CELLS, cells, strict=True))

    def data(self, name: str) -> dict[str, str]:
        """The representations of a cell's result, which is all that it gives."""
        (output,) = self._cells[name].outputs
        assert output.output_type == "execute_result", output
        found: dict[str, str] = output.data
        return found

    def page(self, name: str) -> Any:
        return parsed(self.data(name)["text/html"])

    def error(self, name: str) -> str:
        """The traceback that a cell ends with."""
        found = [output for output in self._cells[name].outputs if output.output_type == "error"]
        assert len(found) == 1, self._cells[name].outputs
        return _ANSI.sub("", "\n".join(found[0].traceback))

    def stream(self, name: str) -> str:
        return "".join(output.text for output in self._cells[name].outputs if output.output_type == "stream")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> Outputs:
    notebook: Any = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    folder = tmp_path_factory.mktemp("notebook")
    client = NotebookClient(
        notebook, timeout=240, allow_errors=True, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return Outputs(notebook.cells)


def test_a_tensor_is_shown_as_html_and_as_its_text(outputs) -> None:
    found = outputs.data("tensor")
    assert set(found) == {"text/html", "text/plain"}
    assert found["text/plain"].startswith("tensor([ 0.,  2.,") and "grad_fn=<MulBackward0>" in found["text/plain"]
    page = parsed(found["text/html"])
    assert "MulBackward0" in page.text and page.all("svg")


def test_a_display_is_one_round_trip(outputs) -> None:
    assert outputs.data("after")["text/plain"] == "1"


def test_print_stays_text(outputs) -> None:
    assert outputs.stream("print") == "tensor([1., 1.])\n"


@pytest.mark.parametrize("name", ["model", "session", "stats", "memory", "explain", "profile", "graph", "waits"])
def test_what_tells_of_a_program_is_shown_as_html(outputs, name) -> None:
    found = outputs.data(name)
    assert found["text/plain"]
    if name != "graph":  # its SVG is tested with it
        parsed(found["text/html"])


def test_lines_of_a_profile_a_graph_and_a_report_are_those_of_cells(outputs) -> None:
    assert f"cell {NUMBER['profile']}, line 2: <module>" in outputs.page("profile").text
    assert f"cell {NUMBER['tensor']}, line 2" in outputs.data("graph")["text/html"]
    report = outputs.page("waits").text
    assert f"cell {NUMBER['displayed']}, line 1torch.arange(12.0)a notebook's display" in report
    assert f"cell {NUMBER['profile']}, line 2(x * 3).sum().item()item" in report
    for name in ("profile", "graph", "waits"):
        assert "ipykernel" not in outputs.data(name)["text/html"]


def test_an_error_is_shown_with_the_lines_of_cells_alone(outputs) -> None:
    shown = outputs.error("wrong")
    places = re.findall(r"^(?:Cell In\[(\d+)\], line (\d+)|(File .*))", shown, re.MULTILINE)
    assert places == [
        (str(NUMBER["wrong"]), "3", ""), (str(NUMBER["wrong"]), "2", ""), (str(NUMBER["model"]), "3", ""),
    ]  # fmt: skip
    assert "ShapeError: matmul: shapes [2, 2] and [3, 3] cannot be multiplied" in shown
    assert shown.rstrip().endswith("frames inside gradwire left out; GRADWIRE_TRACEBACK=full shows all)")


def test_an_error_of_the_server_names_cells(outputs) -> None:
    shown = outputs.error("read")
    assert f"at cell {NUMBER['late']}, line 1" in shown
    assert f"met by a later read, at cell {NUMBER['read']}, line 1" in shown
    assert "client/gradwire" not in shown
    assert outputs.data("details")["text/plain"] == f"'cell {NUMBER['late']}, line 1'"


def test_a_display_of_what_failed_shows_the_error_once(outputs) -> None:
    shown = outputs.stream("failed") + outputs.error("failed")
    assert shown.count("inverse: a matrix is singular") == 1
    assert f"at cell {NUMBER['failed']}, line 1" in shown
    assert outputs.data("fine")["text/plain"] == "tensor([1., 1.])"


def test_an_anomaly_names_the_cell_of_the_operation(outputs) -> None:
    assert f"cell {NUMBER['anomaly']}, line 3\n    (bad.sqrt() * 0)" in outputs.error("anomaly")


def test_an_exception_that_is_caught_has_all_frames(outputs) -> None:
    assert outputs.data("kept")["text/plain"] == "True"


def test_other_exceptions_are_shown_whole(outputs) -> None:
    assert "ZeroDivisionError" in outputs.error("division") and "hooked.py" in outputs.error("division")


def test_full_tracebacks_are_a_setting(outputs) -> None:
    assert "dispatch.py" in outputs.error("full") and "left out" not in outputs.error("full")
