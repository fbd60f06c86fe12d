"""A plan's generated guard agrees with the general walk, or gives no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gradwire as torch
from gradwire_engine.plans.inputs import look
from gradwire_engine.session import plan_cache as cache
from gradwire_engine.session.plan_cache import Plans
from tests.engine.recordings import new_session, record

OFTEN = 12


def trained() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    x = torch.randn(24, 6)
    for number in range(OFTEN):
        optimizer.zero_grad(set_to_none=number < 6)
        loss = model(x[number : number + 8]).mean()
        loss.backward()
        optimizer.step()
        loss.item()


def frozen_later() -> None:
    one, other = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    for number in range(OFTEN):
        one.requires_grad_(number < 6)
        (one * other).sum().backward()
        other.grad.tolist()
        one.grad = other.grad = None


def of_other_shapes() -> None:
    w = torch.randn(4, requires_grad=True)
    for number in range(2 * OFTEN):
        x = torch.randn(1 + number % 3, 4)
        (x * w).sum().backward()
        w.grad.tolist()


def in_other_orders() -> None:
    square = torch.randn(3, 3)
    for number in range(OFTEN):
        x = square.clone() if number % 2 else square.clone().t().contiguous().t()
        x.tolist()
        (x + 1).tolist()


def given_twice() -> None:
    x, y = torch.randn(4), torch.randn(4)
    for number in range(OFTEN):
        (x * (x if number % 3 else y)).tolist()


def sharing_memory() -> None:
    x, y = torch.randn(4), torch.randn(4)
    for number in range(OFTEN):
        other = x.data if number % 2 else y
        other.tolist()
        (x * other).tolist()


def of_one_element() -> None:
    x = torch.randn(1, 1)
    for number in range(OFTEN):
        other = x.clone() if number % 2 else x.clone().reshape(())
        other.tolist()
        (other + x).tolist()


def of_another_gradient() -> None:
    w, x = torch.randn(4, requires_grad=True), torch.randn(4)
    for number in range(OFTEN):
        (w * x).sum().backward()
        w.grad.tolist()
        if number % 3 == 2:
            w.grad = None
        elif number % 3:
            x = w.grad


def of_a_history() -> None:
    w, x = torch.randn(4, requires_grad=True), torch.randn(4)
    for number in range(OFTEN):
        y = (w if number % 3 else x).tanh() if number % 4 else w.detach()
        y.tolist()
        (y[number % 2] + y).tolist()


def of_views() -> None:
    square = torch.randn(4, 4, requires_grad=True)
    for number in range(2 * OFTEN):
        whole = square * 2
        part = whole[number % 3]
        part.tolist()
        if number % 4 == 3:
            whole.mul_(2)
        elif number % 4 == 2:
            part = part.detach()
        (part + whole[0]).tolist()


def watched() -> None:
    w = torch.randn(4, requires_grad=True)
    for number in range(OFTEN):
        y = w * 2
        if number % 2:
            y.retain_grad()
        y.tolist()
        (y + 1).tolist()


@pytest.mark.parametrize(
    "program",
    [
        trained, frozen_later, of_other_shapes, in_other_orders, given_twice, sharing_memory, of_one_element,
        of_another_gradient, of_a_history, of_views, watched,
    ],
)  # fmt: skip
def test_what_a_guard_recognizes_is_what_the_walk_finds(
    program: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    recognized = cache._recognized
    found: list[Any] = []

    def both(entry: Any, run: Any) -> Any:
        ours = recognized(entry, run)
        tensors = [run.session.ids.get(number) for number in run.frame.external]
        walked = look(tensors, entry.deep)
        known = [plan.key for plan in entry.plans]
        if ours is None:
            assert walked.key not in known or any(plan.guard is None for plan in entry.plans)
        else:
            found.append(ours.key)
            assert ours.key == walked.key
            assert len(ours.objects) == len(walked.objects)
            assert all(a is b for a, b in zip(ours.objects, walked.objects, strict=True))
        return ours

    made = record(program)
    tape = new_session()
    tape.plans = None
    expected = made.replayed(tape)
    monkeypatch.setattr(cache, "_recognized", both)
    session = new_session()
    session.plans = Plans()
    assert made.replayed(session) == expected
    assert len(found) >= 3
