"""The client processes an ordinary backward in one sweep, with the same result as the general path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradwire as gw
from gradwire._core.backward import backward as recording_backward
from gradwire._core.backward.client_backward import swept
from gradwire._core.session.session import Session
from gradwire_protocol.errors import GraphError


@pytest.fixture
def alone(monkeypatch) -> Iterator[Session]:
    monkeypatch.setattr(gw._core.session.session, "QUIET_S", 5.0)
    before = gw.current_session()
    with gw.connect() as session:
        yield session
    gw._core.session.current_session._current = before


def chain(x, w) -> Any:
    h = x
    for _ in range(5):
        h = (h @ w).relu()
    return h.mean()


def diamond(x, w) -> Any:
    left, right = (x * w).exp(), (x + w).sin()
    return (left * right + left).sum() + w.sum()


def several_results(x, w) -> Any:
    values, _ = (x @ w).max(dim=1)
    first, second = w.split(2)
    return values.sum() + (first * second).sum()


def detached(x, w) -> Any:
    return ((x @ w).detach() * w).sum()


def view(x, w) -> Any:
    return (x.t().reshape(-1)[:4] * w.view(-1)[4:8]).sum()


def written_over(x, w) -> Any:
    h = x * 2
    h[0] = w[0] * 3
    return (h * w).sum()


PROGRAMS = (chain, diamond, several_results, detached, view, written_over)


def after(session: Session, program: Callable[..., Any]) -> list[Any]:
    """What two backwards leave: records, states of gradients, which nodes are freed, and values."""
    x = gw.tensor(np.arange(16, dtype=np.float32).reshape(4, 4) / 16, requires_grad=True)
    w = gw.tensor(np.arange(16, dtype=np.float32).reshape(4, 4) / 8 - 1, requires_grad=True)
    session.flush()
    found: list[Any] = []
    for _ in range(2):
        result = program(x, w)
        result.backward()
        found.append([[record[0], record[1][1:]] for record in session.builder.records])
        found.append([(t._grad_state, t._grad_history) for t in (x, w)])
        found.append(result.grad_fn.saved is None)
    return [*found, *(None if t.grad is None else t.grad.tolist() for t in (x, w))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_sweep_leaves_what_the_general_way_leaves(alone, monkeypatch, program):
    at_once = after(alone, program)
    monkeypatch.setattr(recording_backward, "swept", lambda start: None)
    assert at_once == after(alone, program)


def test_what_it_goes_through_are_all_nodes_once_and_the_leaves_that_want_a_gradient():
    x, w = gw.ones(2, requires_grad=True), gw.ones(2, requires_grad=True)
    h = x * w
    ordinary = swept((h * h + x).sum()._node)
    assert ordinary is not None
    nodes, leaves = ordinary
    assert len(nodes) == len(set(nodes)) == 6
    assert {id(leaf) for leaf in leaves} == {id(x), id(w)}


def hooked(h) -> None:
    h.register_hook(lambda gradient: gradient)


def retained(h) -> None:
    h.retain_grad()


def freed(h) -> None:
    h.sum().backward()


def changed(h) -> None:
    with gw.no_grad():
        h.add_(1)


@pytest.mark.parametrize("extraordinary", [hooked, retained, freed, changed], ids=lambda case: case.__name__)
def test_anything_else_is_left_to_the_general_way(extraordinary):
    x = gw.ones(2, requires_grad=True)
    h = x.exp()
    assert swept((h * h).sum()._node) is not None
    loss = (h * h).sum()
    extraordinary(h)
    assert swept(loss._node) is None


def test_a_second_backward_through_it_is_refused():
    x = gw.ones(2, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(GraphError, match="freed what it had kept"):
        loss.backward()


@pytest.mark.parametrize("chosen", [..., gw.float32, None], ids=["default", "chosen", "any"])
def test_a_gradient_asked_for_again_and_again_is_the_same_record(alone, chosen):
    records = []
    for _ in range(3):
        x = gw.ones(2, 3, requires_grad=True)
        if chosen is not ...:
            x.grad_dtype = chosen
        (x * 2).sum().backward()
        gradient = x.grad
        assert (gradient.shape, gradient.dtype, gradient.grad_fn) == ((2, 3), gw.float32, None)
        records.append(alone.builder.records[-1][1][1:])
        assert gradient.tolist() == [[2.0] * 3] * 2
    assert records[0] == records[1] == records[2]
