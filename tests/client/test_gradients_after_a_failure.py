"""``.grad`` after a backward that failed on the server: first the error, then the previous gradient."""

from __future__ import annotations

import pytest

import gradwire as torch

pytestmark = pytest.mark.usefixtures("session")


def fails(x: torch.Tensor) -> torch.Tensor:
    """A loss that no gradient comes of: only the server finds out that the matrix is singular."""
    return torch.linalg.inv(torch.zeros(2, 2) * x).sum() + x.sum()


def leaf() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


def refuse_elsewhere() -> None:
    with pytest.raises(torch.linalg.LinAlgError):
        torch.ones(()).item()


def test_a_gradient_that_did_not_come_is_none_once_the_error_was_told() -> None:
    x, beside = leaf(), leaf()
    (fails(x) + beside.sum()).backward()
    refuse_elsewhere()
    assert x.grad is None and beside.grad is None
    assert x.grad is None  # and again


def test_reading_it_first_raises_the_error_with_op_and_line() -> None:
    x = leaf()
    fails(x).backward()
    with pytest.raises(torch.linalg.LinAlgError, match=r"(?s)singular.*issued by inverse.*test_gradients_after"):
        x.grad.tolist()
    assert x.grad is None


def test_one_that_was_looked_at_before_the_error_was_told_goes_on_raising_it() -> None:
    x = leaf()
    fails(x).backward()
    looked_at = x.grad
    refuse_elsewhere()
    for _ in range(2):
        with pytest.raises(torch.linalg.LinAlgError, match="inverse"):
            looked_at.tolist()
    assert x.grad is None


def test_a_gradient_that_was_there_stays() -> None:
    x, beside = leaf(), leaf()
    (3 * x).sum().backward()
    (5 * beside).sum().backward()
    before = x.grad
    (fails(x) + beside.sum()).backward()
    refuse_elsewhere()
    assert x.grad is before and x.grad.tolist() == [3, 3]
    assert beside.grad.tolist() == [5, 5]


def test_a_later_backward_adds_to_what_is_there() -> None:
    x, y = leaf(), leaf()
    fails(x).backward()
    fails(y).backward()
    looked_at = y.grad
    refuse_elsewhere()
    (2 * x + 2 * y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [2, 2]
    assert looked_at is not y.grad


def test_retained_gradients_are_none_as_well() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    fails(y).backward()
    refuse_elsewhere()
    assert y.grad is None and x.grad is None


def test_steps_and_clipping_pass_over_it() -> None:
    x, y = leaf(), leaf()
    steps = torch.optim.SGD([x, y], lr=1.0)
    y.sum().backward()
    fails(x).backward()
    refuse_elsewhere()
    assert torch.nn.utils.clip_grad_norm_([x], 1.0).item() == 0
    steps.step()
    assert x.tolist() == [1, 1] and y.tolist() == [0, 0]


def test_each_leaf_is_asked_for_once(round_trips) -> None:
    x = leaf()
    fails(x).backward()
    refuse_elsewhere()
    after = leaf()
    for gradients in range(3):
        x.grad = after.grad = None
        (x * after).sum().backward()
        round_trips()
        assert x.grad is not None and after.grad is not None
        assert round_trips() == (gradients == 0)
