"""An error that does not depend on values is raised on its line, with PyTorch's class."""

from __future__ import annotations

import math
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


def none(t: Any) -> Any:
    return t.ones(0, 3)


def two(t: Any) -> Any:
    return t.tensor([0, 1])


def row(t: Any) -> Any:
    return t.zeros(1, 3, dtype=t.int64)


EMPTY = {
    "gather": lambda t: t.gather(none(t), 0, row(t)),
    "gather of nothing": lambda t: t.gather(none(t), 1, t.zeros(0, 2, dtype=t.int64)),
    "scatter": lambda t: t.scatter(none(t), 0, row(t), 1.0),
    "scatter_add_": lambda t: none(t).scatter_add_(0, row(t), t.ones(1, 3)),
    "scatter_reduce": lambda t: none(t).scatter_reduce(0, row(t), t.ones(1, 3), "sum"),
    "index_select": lambda t: none(t).index_select(0, two(t)),
    "index_select of nothing": lambda t: none(t).index_select(0, t.zeros(0, dtype=t.int64)),
    "index_select of another dimension": lambda t: none(t).index_select(1, two(t)),
    "index_copy": lambda t: none(t).index_copy(0, two(t), t.ones(2, 3)),
    "index_fill": lambda t: none(t).index_fill(0, two(t), 1.0),
    "take": lambda t: t.take(none(t), two(t)),
    "put_": lambda t: none(t).put_(two(t), t.ones(2)),
    "take_along_dim without dim": lambda t: t.take_along_dim(none(t), two(t)),
    "embedding": lambda t: t.nn.functional.embedding(two(t), none(t)),
    "an index": lambda t: none(t)[two(t)],
}
"""What names elements where there are none, whatever the values of the index."""


@pytest.mark.parametrize("name", EMPTY)
def test_an_index_into_nothing_is_refused_at_the_line(name: str) -> None:
    assert place_of(one_line(EMPTY[name]), gradwire) == place_of(one_line(EMPTY[name]), torch)


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
    "cdist of a negative order": lambda t: t.cdist(t.ones(2, 3), t.ones(2, 3), p=-1.0),
    "pdist of no order": lambda t: t.pdist(t.ones(3, 2), math.nan),
    "renorm of order 0": lambda t: t.renorm(t.ones(2, 3), 0.0, 0, 1.0),
    "renorm to a negative norm": lambda t: t.renorm(t.ones(2, 3), 2, 0, -1.0),
    "the largest of no elements": lambda t: t.linalg.vector_norm(t.ones(0), math.inf),
    "a negative norm of no elements": lambda t: t.linalg.vector_norm(t.ones(0, 2), -1, dim=0),
    "the Euclidean norm of no elements": lambda t: t.linalg.vector_norm(t.ones(0), 2),
    "quantile above 1": lambda t: t.quantile(t.ones(3), 1.5),
    "nanquantile that is none": lambda t: t.nanquantile(t.ones(3), math.nan),
    "histc downward": lambda t: t.histc(t.ones(3), 4, 1.0, -1.0),
    "histc without end": lambda t: t.histc(t.ones(3), 4, 0.0, math.inf),
    "one_hot of nothing": lambda t: t.nn.functional.one_hot(t.ones(0, dtype=t.int64)),
    "an index into nothing": lambda t: t.ones(3, 0)[:, [0, 1]],
    "no index into nothing": lambda t: t.ones(3, 0)[:, t.ones(0, dtype=t.int64)],
    "lengths beyond the input of ctc_loss": lambda t: ctc(t, [9], [1]),
    "lengths beyond the labels of ctc_loss": lambda t: ctc(t, [5], [3]),
    "a negative length of ctc_loss": lambda t: ctc(t, [5], [-1]),
    "integers for what requires grad": lambda t: setattr(leaf(t), "data", t.tensor([1, 2, 3])),
    "300 into int8 by masked_fill": lambda t: t.ones(2, dtype=t.int8).masked_fill(t.tensor([True, False]), 300),
    "NaN into integers by fill_": lambda t: t.ones(2, dtype=t.int64).fill_(math.nan),
    "NaN into integers by full": lambda t: t.full((2,), math.nan, dtype=t.int32),
    "an infinite threshold of integers": lambda t: t.nn.functional.threshold(t.tensor([1]), math.inf, 0),
    "NaN bounds of integers": lambda t: t.nn.functional.hardtanh(t.tensor([1]), math.nan, 3),
    "a bound beyond int8": lambda t: t.ones(2, dtype=t.int8).clamp(max=300),
    "a fraction for integers": lambda t: t.nn.functional.threshold(t.tensor([1]), 0.5, 0),
    # Shapes of their own: where the form of a call is known already, this is told at the next read.
    "an integer beyond 64 bits": lambda t: t.ones(1, 13, 1).mul(2**64),
    "a large integer": lambda t: t.ones(1, 1, 13).mul(2**64 - 1),
    "a dimension beyond 64 bits": lambda t: t.ones(2).sum(2**63),
    "an extent beyond 64 bits": lambda t: t.ones(2).view(2**63),
    "a number beyond all floats": lambda t: t.ones(2).normal_(0, 10**400),
    "a scatter of what int8 does not hold": lambda t: t.ones(2, dtype=t.int8).scatter(0, t.tensor([0]), -300),
    "soft margins with a complex target": lambda t: t.nn.functional.soft_margin_loss(t.ones(2), t.ones(2) * 1j),
    "leaky_relu_ of a complex slope": lambda t: t.nn.functional.leaky_relu_(t.ones(2), 1j),
    "random_ of complex numbers": lambda t: t.ones(2, dtype=t.complex128).random_(),
}


def ctc(t: Any, times: list[int], labels: list[int]) -> Any:
    return t.nn.functional.ctc_loss(t.zeros(5, 1, 4), t.tensor([[1, 2]]), times, labels)


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


def test_a_number_that_no_message_carries_ends_nothing(session: Any) -> None:
    x = gradwire.ones(2)
    for factor in (2, 3, 10**400, 4):
        try:
            y = x * factor
            assert y.tolist() == [factor, factor]
        except OverflowError:
            assert factor == 10**400
    assert (x * 5).tolist() == [5.0, 5.0]


COMPLEX = {
    "normal_": lambda t: t.ones(2).normal_(1j, 1.0),
    "uniform_": lambda t: t.ones(2).uniform_(0, 1j),
    "bernoulli": lambda t: t.bernoulli(t.ones(2), 1j),
    "std": lambda t: t.std(t.ones(2), correction=1j),
    "var": lambda t: t.var(t.ones(2), correction=1j),
    "elu": lambda t: t.nn.functional.elu(t.ones(2), 1j),
    "threshold": lambda t: t.nn.functional.threshold(t.ones(2), 1j, 0),
    "pdist": lambda t: t.pdist(t.ones(2, 2), 1j),
    "softshrink": lambda t: t.nn.functional.softshrink(t.ones(2), 1j),
    "addmm": lambda t: added(t, t.float32),
    "addmm of complex tensors": lambda t: added(t, t.complex64),
    "renorm": lambda t: t.ones(2, 2).renorm(1j, 0, 1),
    "logspace": lambda t: t.logspace(0, 1, 3, base=1j),
    "norm": lambda t: t.linalg.vector_norm(t.ones(2), 1j),
    "nan_to_num": lambda t: t.nan_to_num(t.ones(2), 1j),
    "pad": lambda t: t.nn.functional.pad(t.ones(2), (1, 1), value=1j),
    "clamp": lambda t: t.ones(2).clamp(1j),
    "quantile": lambda t: t.quantile(t.ones(2), 1j),
    "logit": lambda t: t.logit(t.ones(2), 1j),
    "isclose": lambda t: t.isclose(t.ones(2), t.ones(2), 1j),
    "searchsorted": lambda t: t.searchsorted(t.ones(2), 1j),
    "cdist": lambda t: t.cdist(t.ones(2, 2), t.ones(2, 2), 1j),
    "addcmul": lambda t: t.addcmul(t.ones(2), t.ones(2), t.ones(2), value=1j),
    "normal": lambda t: t.normal(1j, 1, (2,)),
}


def added(t: Any, dtype: Any) -> Any:
    x = t.ones(2, 2, dtype=dtype)
    return t.addmm(x, x, x, beta=1j)


@pytest.mark.parametrize("what", COMPLEX)
def test_a_complex_number_for_a_real_one_is_refused_on_its_line(session: Any, what: str) -> None:
    lines = one_line(COMPLEX[what])
    assert place_of(lines, gradwire) == place_of(lines, torch)
    session.synchronize()


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


def made_inside(t: Any, *shape: int) -> Any:
    with t.inference_mode():
        return t.ones(*(shape or (3,))) * 2


def multiplied(t: Any) -> Any:
    x, y, z = leaf(t), t.ones(3), made_inside(t)
    for _ in range(3):  # a form of call that is known
        yield x * y
    yield y * 2
    yield z * x


def added_to(t: Any) -> Any:
    x, z = leaf(t), made_inside(t)
    for _ in range(3):
        yield x + z
    (x + z).sum().backward()
    yield x.grad


def a_layer(t: Any) -> Any:
    layer = t.nn.Linear(3, 2)
    for _ in range(3):
        yield layer(t.ones(4, 3))
    yield layer(made_inside(t, 4, 3))


def in_place(t: Any) -> Any:
    h = leaf(t) * 1
    yield h.mul_(t.ones(3))
    yield h.mul_(made_inside(t))


def of_a_list(t: Any) -> Any:
    x = leaf(t)
    yield t.cat([x, made_inside(t)])
    yield x * made_inside(t)[:]


def of_three(t: Any) -> Any:
    x, b = leaf(t).reshape(1, 3), t.ones(2)
    for _ in range(3):
        yield t.addmm(b, x, t.ones(3, 2))
    yield t.addmm(b, x, made_inside(t, 3, 2))


@pytest.mark.parametrize(
    "lines", [multiplied, added_to, a_layer, in_place, of_a_list, of_three], ids=lambda f: f.__name__
)
def test_saving_what_was_made_in_inference_mode_is_refused_on_its_line(session: Any, lines: Any) -> None:
    for _ in range(2):
        assert place_of(lines, gradwire) == place_of(lines, torch)
    session.synchronize()
