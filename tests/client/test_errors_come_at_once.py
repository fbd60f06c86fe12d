"""An error whose cause needs no value is raised at the line that makes it, in the class that PyTorch raises there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.side_by_side import built_in

import gradwire

Lines = list[Callable[[], Any]]


def leaf(t: Any, *values: float) -> Any:
    return t.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


def place_of(lines: Callable[[Any], Any], t: Any) -> Any:
    """The number of the line of a generator at which an error is raised, and its class; ``None`` without one.

    Nothing is read, so that an error that waits for a value is not seen.
    """
    at = 0
    try:
        for at, _ in enumerate(lines(t), 1):  # noqa: B007
            pass
    except Exception as error:
        return at, built_in(error)
    return None


def one_line(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def lines(t: Any) -> Any:
        yield call(t)

    return lines


NUMBERS = {
    "an integer to a negative power": lambda t: t.tensor([2, 3]) ** -2,
    "an integer to a negative power in place": lambda t: t.tensor([2, 3]).pow_(-2),
    "an integer to a positive power": lambda t: t.tensor([2, 3]) ** 2,
    "softshrink of a negative width": lambda t: t.nn.functional.softshrink(t.ones(2), lambd=-0.5),
    "celu of alpha 0": lambda t: t.nn.functional.celu(t.ones(2), 0.0),
    "uniform_ downward": lambda t: t.empty(2).uniform_(3, -1),
    "normal_ of a negative std": lambda t: t.empty(2).normal_(0, -1),
    "normal of a negative std": lambda t: t.normal(0.0, -1.0, (2,)),
    "normal of tensors with a negative std": lambda t: t.normal(t.ones(2), -1.0),
    "exponential_ of rate 0": lambda t: t.empty(2).exponential_(0),
    "geometric_ of a negative probability": lambda t: t.empty(2).geometric_(-1),
    "geometric_ of probability 1": lambda t: t.empty(2).geometric_(1),
    "log_normal_ of a negative std": lambda t: t.empty(2).log_normal_(0, -1),
    "cauchy_ of sigma 0": lambda t: t.empty(2).cauchy_(0, 0),
    "bernoulli of 2": lambda t: t.bernoulli(t.ones(2), 2.0),
    "bernoulli_ of 2": lambda t: t.ones(2).bernoulli_(2.0),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_a_number_that_cannot_be_is_refused_on_its_line(session: Any, what: str) -> None:
    lines = one_line(NUMBERS[what])
    for _ in range(3):  # a form of call that is known is checked as well
        assert place_of(lines, gradwire) == place_of(lines, torch)
    session.synchronize()


def test_a_form_of_call_that_is_known_is_checked_each_time(session: Any) -> None:
    x = gradwire.tensor([2, 3])
    for _ in range(3):
        assert (x**2).tolist() == [4, 9]
        with pytest.raises(RuntimeError, match="negative integer power"):
            x**-2


def through(result: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def lines(t: Any) -> Any:
        x = leaf(t, 1.0, 2.0, 3.0)
        y = result(t, x)
        yield y
        z = y.sum()
        yield z
        z.backward()
        yield x.grad

    return lines


def reduced_qr(mode: str, *shape: int) -> Callable[[Any], Any]:
    def lines(t: Any) -> Any:
        x = (t.arange(12.0).reshape(shape) + t.eye(*shape)).requires_grad_()
        _, r = t.linalg.qr(x, mode=mode)
        yield r
        r.sum().backward()
        yield x.grad

    return lines


def histogram(t: Any) -> Any:
    x = leaf(t)
    counts, _ = t.histogram(x, 3)
    yield counts.requires_grad
    counts.sum().backward()
    yield x.grad


def by_the_other(t: Any) -> Any:
    order = leaf(t, 1.0, 2.0)
    x = leaf(t, 0.5, 1.5)
    y = t.special.gammainc(order.detach(), x)
    y.sum().backward()
    yield x.grad
    t.autograd.grad(t.special.gammainc(order, x).sum(), x)
    yield None
    t.special.gammainc(order, x).sum().backward()
    yield None


def unused(t: Any) -> Any:
    x = leaf(t)
    y = x * 2
    z = y.sum() + (x // 2).detach().sum()
    z.backward()
    yield x.grad


WITHOUT_DERIVATIVE = {
    "heaviside": through(lambda t, x: t.heaviside(x, t.zeros(3))),
    "heaviside in place": through(lambda t, x: (x * 1).heaviside_(t.zeros(3))),
    "floor division": through(lambda t, x: x // 2),
    "floor division of two": through(lambda t, x: x // x),
    "floor division of integers": lambda t: [t.tensor([3]) // 2],
    "histogram": histogram,
    "gammainc by its order": through(lambda t, x: t.special.gammainc(x, t.ones(3))),
    "gammaincc by its order": through(lambda t, x: t.special.gammaincc(x, t.ones(3))),
    "zeta by its exponent": through(lambda t, x: t.special.zeta(x + 1, t.ones(3))),
    "gammainc by either": by_the_other,
    "qr without q": reduced_qr("r", 4, 3),
    "complete qr of a tall matrix": reduced_qr("complete", 4, 3),
    "complete qr of a wide matrix": reduced_qr("complete", 3, 4),
    "one that gradients do not pass": unused,
}


@pytest.mark.parametrize("what", WITHOUT_DERIVATIVE)
def test_a_missing_derivative_is_found_by_backward(session: Any, what: str) -> None:
    lines = WITHOUT_DERIVATIVE[what]
    for _ in range(2):
        assert place_of(lines, gradwire) == place_of(lines, torch)
    session.synchronize()
