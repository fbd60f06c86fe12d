"""A freed graph, or one with changed saved tensors, is refused at the line that uses it, with an explanation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import gradwire

HERE = str(Path(__file__))


@pytest.fixture
def quiet(session: Any) -> Any:
    """A function that tells whether nothing was recorded or asked for since it was last called."""

    def counts() -> tuple[int, int]:
        with session.lock:  # what was recorded may be sent at any moment
            return session.recorded, session.link.round_trips

    session.synchronize()
    last = [counts()]

    def unchanged() -> bool:
        before, last[0] = last[0], counts()
        return before == last[0]

    return unchanged


def leaf(values: list[float] | None = None) -> Any:
    return gradwire.tensor(values or [1.0, 2.0], requires_grad=True)


def test_a_second_backward_is_refused_before_anything_is_recorded(session, quiet) -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward()
    quiet()
    with pytest.raises(RuntimeError, match="retain_graph=True") as caught:
        y.backward()
    assert quiet()
    assert "MulBackward0" in str(caught.value)
    assert HERE in str(caught.value)
    assert caught.traceback[-1].frame.code.path != HERE
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_node_that_kept_nothing_runs_again() -> None:
    x = leaf()
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_number_is_kept_as_a_tensor_as_in_pytorch() -> None:
    for lib in (torch, gradwire):
        y = lib.ones(2, requires_grad=True) * 2
        y.sum().backward()
        with pytest.raises(RuntimeError):
            y.sum().backward()


def test_only_what_was_gone_through_is_freed() -> None:
    for lib in (torch, gradwire):
        x, w = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
        through_x, through_w = x.exp(), w.exp()
        y = (through_x + through_w).sum()
        lib.autograd.grad(y, x)
        lib.autograd.grad(y, w)
        with pytest.raises(RuntimeError):
            lib.autograd.grad(y, x)


def test_retain_graph_frees_nothing() -> None:
    x = leaf()
    y = x.exp().sum()
    for _ in range(3):
        y.backward(retain_graph=True)
    assert x.grad.tolist() == pytest.approx([3 * 2.718281828, 3 * 7.389056099])


def test_a_write_names_the_tensor_the_op_that_kept_it_and_the_op_that_wrote(session, quiet) -> None:
    x, weights = leaf(), gradwire.tensor([3.0, 4.0]).set_name("weights")
    y = x * weights
    weights.add_(1)
    quiet()
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    told = str(caught.value)
    assert "'weights'" in told
    assert "'other'" in told
    assert "MulBackward0 (mul)" in told
    assert "add_ changed it" in told
    first = test_a_write_names_the_tensor_the_op_that_kept_it_and_the_op_that_wrote.__code__.co_firstlineno
    assert f"{HERE}:{first + 2}" in told
    assert f"{HERE}:{first + 3}" in told
    assert x.grad is None


def test_a_tensor_without_a_name_is_described() -> None:
    x = leaf()
    y = x.exp()
    with gradwire.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match=r"keeps its result, a float32\[2\] tensor"):
        y.sum().backward()


@pytest.mark.parametrize("way", ["detach", "view", "no_grad", "setitem", "copy_", "optimizer"])
def test_every_way_of_writing_is_noticed(way: str) -> None:
    x, w = leaf(), leaf([3.0, 4.0])
    w = w if way == "optimizer" else w.detach()
    y = (x * w).sum()
    if way == "detach":
        w.detach().add_(1)
    elif way == "view":
        w[:1].add_(1)
    elif way == "no_grad":
        with gradwire.no_grad():
            w.add_(1)
    elif way == "setitem":
        w[0] = 5.0
    elif way == "copy_":
        w.copy_(gradwire.zeros(2))
    else:
        w.grad = gradwire.ones(2)
        gradwire.optim.SGD([w], lr=1.0).step()
    with pytest.raises(RuntimeError, match="in place"):
        y.backward()


def test_writes_to_data_go_unnoticed_as_in_pytorch() -> None:
    for lib in (torch, gradwire):
        x, w = lib.ones(2, requires_grad=True), lib.ones(2)
        y = (x * w).sum()
        w.data.mul_(5)
        y.backward()
        assert x.grad.tolist() == [5.0, 5.0]


def test_what_is_not_kept_may_be_written_to() -> None:
    for lib in (torch, gradwire):
        x, w = lib.ones(2, requires_grad=True), lib.ones(2)
        y = (x + w).sum()
        w.add_(1)
        z = x.sin()
        with lib.no_grad():
            z.zero_()
        (y + z.sum()).backward()
        assert x.grad.tolist() == pytest.approx([1.5403023, 1.5403023])


def test_keeping_tensors_does_not_keep_proxies_alive(session) -> None:
    x, w = leaf(), gradwire.ones(2)
    y = x * w
    number = w._id
    session.flush()
    del w
    assert number in session.builder.dropped
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
