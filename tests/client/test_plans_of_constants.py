"""What a planned frame makes of constants alone belongs to the program: later frames may write to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import gradwire as torch

FRAMES = 12
"""More than it takes until frames run by plans."""

MAKERS: dict[str, Callable[[], torch.Tensor]] = {
    "zeros": lambda: torch.zeros(()),
    "ones": lambda: torch.ones(4),
    "full": lambda: torch.full((2, 2), 0.5),
    "arange": lambda: torch.arange(4.0),
    "of constants": lambda: torch.ones(3) * torch.ones(3),
    "a view": lambda: torch.zeros(2, 3).t(),
    "of another dtype": lambda: torch.ones(3).to(torch.float64),
    "an integer": lambda: torch.zeros(2, dtype=torch.int64),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_constant_is_made_anew_in_each_frame(name: str) -> None:
    session = torch.current_session()
    first = None
    for _ in range(FRAMES):
        made = MAKERS[name]()
        session.synchronize()
        made += 1
        made += 1
        found = made.tolist()
        first = found if first is None else first
        assert found == first


def test_a_gradient_of_ones_is_made_anew_in_each_frame() -> None:
    session = torch.current_session()
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(FRAMES):
        w.sum().backward()
        session.synchronize()
        assert w.grad is not None
        w.grad.mul_(3)
        assert w.grad.tolist() == [3, 3, 3]
        w.grad = None


def test_a_total_starts_at_zero_in_each_epoch() -> None:
    w = torch.ones(3)
    for _ in range(FRAMES):
        total = torch.zeros(())
        for _ in range(3):
            total += (w * 1.0).sum()
        assert (w * 2).sum().item() == 6
        assert total.item() == 9
