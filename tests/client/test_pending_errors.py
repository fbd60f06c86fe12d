"""An error that surfaces later names its op, operands and line, wherever it is raised."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gradwire
from gradwire_protocol.errors import GradwireError

NUMPY = re.compile("axis|broadcast|infs|Singular|Matrix is|array|LinAlg|ValueError|argument")
"""Words of NumPy's texts."""

FAILING: dict[str, Callable[[Any], Any]] = {
    "index": lambda lib: lib.ones(3)[lib.tensor([0, 5])],
    "index, several": lambda lib: lib.ones(3, 3)[lib.tensor([0, 1]), lib.tensor([0, 7])],
    "index_put": lambda lib: lib.ones(3).index_put_([lib.tensor([5])], lib.ones(1)),
    "index_put, shapes": lambda lib: lib.zeros(3).index_put_([lib.tensor([True, True, False])], lib.ones(5)),
    "inverse": lambda lib: lib.linalg.inv(lib.zeros(3, 3)),
    "cholesky": lambda lib: lib.linalg.cholesky(-lib.eye(3)),
    "solve": lambda lib: lib.linalg.solve(lib.zeros(2, 2), lib.ones(2, 1)),
    "gather": lambda lib: lib.gather(lib.ones(3), 0, lib.tensor([7])),
    "floor_divide": lambda lib: lib.tensor([2, 3]) // lib.tensor([0, 2]),
    "embedding": lambda lib: lib.nn.functional.embedding(lib.tensor([9]), lib.ones(3, 3)),
    "masked_scatter": lambda lib: lib.ones(3).masked_scatter_(lib.tensor([True, True, True]), lib.ones(1)),
}


def line_of(function: Callable[..., Any], offset: int = 0) -> str:
    return f"{Path(__file__)}:{inspect.getsourcelines(function)[1] + offset}"


@pytest.mark.parametrize("name", FAILING)
def test_an_unread_error_names_its_op_its_operands_and_its_line(name: str, session: Any) -> None:
    failing = FAILING[name]
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        failing(torch)
    failing(gradwire)
    session.flush()
    unrelated = gradwire.ones(2)
    with pytest.raises(GradwireError) as found:
        unrelated.tolist()
    text, details = str(found.value), found.value.details
    assert f"issued by {details['op']} of " in text
    assert re.search(r"of (float32|int64|bool)\[", text)
    assert details["line"] in text
    assert details["line"] == line_of(failing)
    assert "met by a later read, at " in text
    assert str(Path(__file__)) in text.rsplit("met by a later read, at ", 1)[1]
    assert not NUMPY.search(found.value.args[0].partition("\n")[0]), text
    assert unrelated.tolist() == [1.0, 1.0]


def test_an_error_of_the_read_itself_names_no_other_line(session: Any) -> None:
    with pytest.raises(GradwireError) as found:
        gradwire.linalg.inv(gradwire.zeros(3, 3)).tolist()
    assert "a later read" not in str(found.value)


def test_the_line_of_one_among_very_many_errors_is_known(session: Any) -> None:
    last = None
    for _ in range(100):
        last = gradwire.linalg.inv(gradwire.zeros(3, 3))
        session.flush()
    with pytest.raises(GradwireError):
        gradwire.ones(1).tolist()
    with pytest.raises(GradwireError) as found:
        assert last is not None
        last.tolist()
    assert found.value.details["line"] == line_of(test_the_line_of_one_among_very_many_errors_is_known, 3)
