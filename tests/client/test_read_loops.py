"""The warning for a line that reads many values one by one, and where it must not come."""

from __future__ import annotations

import warnings

import pytest

import gradwire as torch
from gradwire._core.session.read_loops import FEW_OPS, MANY, ReadLoopWarning


@pytest.fixture(autouse=True)
def _every_one_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReadLoopWarning)
        yield


def test_many_reads_at_one_line_warn_once_with_the_line_and_the_way() -> None:
    values = torch.arange(float(2 * MANY))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ReadLoopWarning)
        for i in range(2 * MANY):
            values[i].item()  # this line
        assert len(found) == 1
    assert found[0].filename == __file__
    with open(__file__) as file:
        assert "# this line" in file.readlines()[found[0].lineno - 1]
    said = str(found[0].message)
    assert f"item() was called {MANY} times" in said and "torch.fetch(" in said and "torch.stack(" in said


def test_it_can_be_silenced() -> None:
    assert torch.ReadLoopWarning is ReadLoopWarning and issubclass(ReadLoopWarning, UserWarning)
    values = torch.arange(float(2 * MANY))
    warnings.filterwarnings("ignore", category=torch.ReadLoopWarning)
    for i in range(MANY + 10):
        float(values[i])


def test_fewer_reads_do_not() -> None:
    values = torch.arange(float(MANY))
    for i in range(MANY - 1):
        values[i].item()


def test_reads_at_different_lines_do_not() -> None:
    values = torch.arange(float(2 * MANY))
    for i in range(0, 2 * MANY, 2):
        values[i].item()
        values[i + 1].item()


def test_a_training_loop_that_reads_its_loss_does_not() -> None:
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.01)
    for _ in range(MANY + 10):
        optimizer.zero_grad()
        loss = weight.sum()  # as few ops as a step can have
        loss.backward()
        optimizer.step()
        loss.item()


def test_a_loop_that_changes_memory_does_not() -> None:
    total = torch.zeros(())
    for _ in range(MANY + 10):
        total += 1
        total.item()


def test_a_loop_with_other_work_does_not() -> None:
    x = torch.ones(3)
    for _ in range(MANY + 10):
        y = x
        for _ in range(FEW_OPS):
            y = y + 1
        y.sum().item()


def test_decisions_do_not_since_they_cannot_be_read_together() -> None:
    x = torch.arange(float(MANY + 10))
    assert sum(bool(x[i] > 3) for i in range(MANY + 10)) == MANY + 6
