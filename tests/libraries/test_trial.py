"""How the runs of a library's program are compared, and that every program has its entry. No library is needed."""

import json

import pytest

from tests.libraries.entries import ENTRIES, PROGRAMS
from tests.libraries.record import FILE
from tests.libraries.trial import difference, reason

RESULTS = {"losses": [1.0, 0.5], "logits": {"shape": [2], "norm": 2.0, "first": [float("nan"), 2.0]}, "same": True}


def test_every_program_has_an_entry_and_says_what_it_does():
    assert {path.stem.removeprefix("with_") for path in PROGRAMS.glob("with_*.py")} == set(ENTRIES)
    assert all(entry.does for entry in ENTRIES.values())


def test_the_record_tells_of_the_programs_as_they_are():
    rows = json.loads(FILE.read_text(encoding="utf-8"))["entries"]
    assert list(rows) == [name for name in ENTRIES if name in rows]
    assert {name: row["does"] for name, row in rows.items()} == {name: ENTRIES[name].does for name in rows}


def test_equal_results_have_no_difference():
    near = {**RESULTS, "losses": [1.0 + 1e-6, 0.5]}
    assert difference(near, RESULTS, 1e-4) == ""


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"losses": [1.0, 0.6]}, "losses[1]: 0.6 and with PyTorch 0.5"),
        ({"losses": [1.0]}, "losses: 1 values and with PyTorch 2"),
        ({"same": False}, "same: False and with PyTorch True"),
        ({"same": 1}, "same: 1 and with PyTorch True"),
        ({"logits": {**RESULTS["logits"], "first": [0.0, 2.0]}}, "logits.first[0]: 0.0 and with PyTorch nan"),
    ],
)
def test_a_difference_is_told_by_its_place(changed, told):
    assert difference({**RESULTS, **changed}, RESULTS, 1e-4) == told


def test_results_that_lack_one_differ():
    assert "with PyTorch" in difference({"losses": [1.0, 0.5]}, RESULTS, 1e-4)


def test_the_reason_is_the_first_name_that_is_missing():
    cause = (
        "Traceback\ngradwire._core.surface.unsupported.AbsentModule: torch.hub does not exist in gradwire: see there"
    )
    wrapped = (
        f"{cause}\n\nThe above exception was the direct cause of the following exception:\n\nImportError: no model"
    )
    assert reason(wrapped) == "torch.hub"
    assert reason("Traceback\nValueError: odd\nTypeError: the last") == "TypeError: the last"
    assert reason("killed") == ""
