"""Gradients with history: ``requires_grad``, ``grad_fn`` and dependencies, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gradwire

BOTH = (torch, gradwire)


def three(lib: Any) -> Any:
    return lib.tensor([1.0, 2.0, 3.0], requires_grad=True)


def square(lib: Any) -> Any:
    return lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)


def _slice_written(lib: Any, x: Any) -> Any:
    y = x.clone()
    y[0].mul_(x[1])
    return y * y


ORDINARY: dict[str, Callable[[Any, Any], Any]] = {
    "3 x": lambda lib, x: 3 * x, "x + 1": lambda lib, x: x + 1, "-x": lambda lib, x: -x, "x / 2": lambda lib, x: x / 2,
    "x ** 2": lambda lib, x: x**2, "x ** 3": lambda lib, x: x**3, "x x": lambda lib, x: x * x,
    "exp": lambda lib, x: x.exp(), "sin": lambda lib, x: x.sin(), "cos": lambda lib, x: x.cos(),
    "log": lambda lib, x: x.log(), "sqrt": lambda lib, x: x.sqrt(), "tanh": lambda lib, x: x.tanh(),
    "sigmoid": lambda lib, x: x.sigmoid(), "relu": lambda lib, x: x.relu(), "1 / x": lambda lib, x: 1 / x,
    "sum": lambda lib, x: x.sum(), "mean": lambda lib, x: x.mean(), "mean of squares": lambda lib, x: (x * x).mean(),
    "softmax": lambda lib, x: x.softmax(0), "logsumexp": lambda lib, x: x.logsumexp(0), "abs": lambda lib, x: x.abs(),
    "cumsum": lambda lib, x: x.cumsum(0), "expand": lambda lib, x: x.expand(2, 3),
    "cat": lambda lib, x: lib.cat([x, x]),
    "stack": lambda lib, x: lib.stack([x, x * 2]) ** 2, "where": lambda lib, x: lib.where(x > 1, x * x, x),
    "var": lambda lib, x: x.var(), "prod": lambda lib, x: x.sigmoid().prod(),
    "maximum": lambda lib, x: lib.maximum(x, x * x),
    "clamp": lambda lib, x: x.clamp(0, 2), "double": lambda lib, x: (x * 2).double(),
    "select": lambda lib, x: x[0] * x[1],
    "broadcast": lambda lib, x: x.reshape(3, 1) * x, "x ** x": lambda lib, x: x**x,
}  # fmt: skip


def told(gradient: Any) -> tuple[bool, bool, str | None]:
    node = gradient.grad_fn
    return gradient.requires_grad, gradient.is_leaf, None if node is None else node.name()


@pytest.mark.parametrize("name", list(ORDINARY))
def test_ordinary_gradients_have_pytorchs_history(name: str, session, round_trips) -> None:
    found = []
    for lib in BOTH:
        x = three(lib)
        (g,) = lib.autograd.grad(ORDINARY[name](lib, x).sum(), x, create_graph=True)
        found.append(told(g))
    assert found[0] == found[1]
    assert round_trips() == 0


@pytest.mark.parametrize("name", list(ORDINARY))
def test_second_gradients_are_there_exactly_where_pytorch_has_them(name: str) -> None:
    found = []
    for lib in BOTH:
        x = three(lib)
        (g,) = lib.autograd.grad(ORDINARY[name](lib, x).sum(), x, create_graph=True)
        try:
            (second,) = lib.autograd.grad(g.sum(), x)
            found.append((second + 0).tolist())  # PyTorch cannot list the zeros that it does not store
        except RuntimeError:
            found.append(None)
    if found[0] is None:
        assert found[1] is None
    else:
        assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-5)


def test_a_constant_gradient_is_refused_at_once(session) -> None:
    x = three(gradwire)
    (slope,) = gradwire.autograd.grad((3 * x).sum(), x, create_graph=True)
    assert not slope.requires_grad
    total = slope.sum()
    recorded = session.recorded
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradwire.autograd.grad(total, x)
    assert session.recorded == recorded


def test_gradients_depend_on_the_right_leaves() -> None:
    for lib in BOTH:
        x, w, unused = three(lib), three(lib), three(lib)
        by_x, by_w = lib.autograd.grad((x * w).sum(), [x, w], create_graph=True)
        assert [g is None for g in lib.autograd.grad(by_x.sum(), [x, w, unused], allow_unused=True)] == [
            True,
            False,
            True,
        ]
        assert [g is None for g in lib.autograd.grad(by_w.sum(), [x, w, unused], allow_unused=True)] == [
            False,
            True,
            True,
        ]


@pytest.mark.parametrize("loss", ["hinge_embedding_loss", "margin_ranking_loss"])
def test_what_a_loss_of_straight_pieces_does_not_depend_on_gets_no_gradient(loss: str) -> None:
    """A gradient penalty: the slope depends on the weight, and not on where it was taken."""
    for lib in BOTH:
        x, w = three(lib), three(lib)
        rest = [-lib.ones(3)] * (1 if loss == "hinge_embedding_loss" else 2)
        y = getattr(lib.nn.functional, loss)(x * w, *rest, margin=20.0)
        (slope,) = lib.autograd.grad(y, x, create_graph=True)
        slope.square().sum().backward()
        assert x.grad is None
        assert w.grad.tolist() == pytest.approx([2 / 9, 4 / 9, 6 / 9])


def test_matrix_products_and_their_operands() -> None:
    for lib in BOTH:
        x, w = square(lib), square(lib)
        by_x, by_w = lib.autograd.grad((x @ w).sum(), [x, w], create_graph=True)
        assert [told(g) for g in (by_x, by_w)] == [(True, False, "MmBackward0")] * 2
        assert [g is None for g in lib.autograd.grad(by_x.sum(), [x, w], allow_unused=True)] == [True, False]


def test_an_initial_gradient_that_requires_grad() -> None:
    for lib in BOTH:
        x, v = three(lib), three(lib)
        (g,) = lib.autograd.grad(3 * x, x, v, create_graph=True)
        assert told(g) == (True, False, "MulBackward0")
        (by_v,) = lib.autograd.grad(g.sum(), v)
        assert by_v.tolist() == [3.0, 3.0, 3.0]


def test_an_initial_gradient_that_is_passed_on_stays_a_leaf() -> None:
    for lib in BOTH:
        x, v = three(lib), three(lib)
        (g,) = lib.autograd.grad(x + 0, x, v, create_graph=True)
        assert told(g) == (True, True, None)


def test_orders_up_to_the_fourth() -> None:
    for lib in BOTH:
        x = lib.tensor(2.0, requires_grad=True)
        found, current = [], x**4
        for _ in range(4):
            (current,) = lib.autograd.grad(current, x, create_graph=True)
            found.append((current.item(), current.requires_grad))
        assert found == [(32.0, True), (48.0, True), (48.0, True), (24.0, True)]


@pytest.mark.filterwarnings("ignore:.*create_graph=True")
def test_grad_has_history_after_backward_with_create_graph(session) -> None:
    for lib in BOTH:
        x = three(lib)
        (x**3).sum().backward(create_graph=True)
        first = told(x.grad)
        (x**3).sum().backward(create_graph=True)
        assert [first, told(x.grad)] == [(True, False, "torch::autograd::CopyBackwards"), (True, False, "AddBackward0")]
        (second,) = lib.autograd.grad(x.grad.sum(), x)
        assert second.tolist() == [12.0, 24.0, 36.0]


@pytest.mark.filterwarnings("ignore:.*create_graph=True")
def test_grad_without_history() -> None:
    for lib in BOTH:
        x = three(lib)
        (3 * x).sum().backward(create_graph=True)
        assert told(x.grad) == (False, True, None)
        x.grad = None
        (x**2).sum().backward()
        assert told(x.grad) == (False, True, None)


def test_a_write_into_a_view_is_gone_through() -> None:
    for lib in BOTH:
        x = three(lib)
        (g,) = lib.autograd.grad(_slice_written(lib, x).sum(), x, create_graph=True)
        assert g.requires_grad
        (second,) = lib.autograd.grad(g.sum(), x)
        assert second.tolist() == pytest.approx([16.0, 12.0, 2.0])


def test_a_graph_of_a_gradient_is_freed_like_any_other() -> None:
    for lib in BOTH:
        x = three(lib)
        (g,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward(inputs=[x])
        with pytest.raises(RuntimeError):
            g.sum().backward(inputs=[x])


def test_printing_a_gradient_brings_the_name_its_node_has_on_the_server(round_trips) -> None:
    x = three(gradwire)
    (g,) = gradwire.autograd.grad((gradwire.nn.functional.softplus(x) + x.tan()).sum(), x, create_graph=True)
    round_trips()
    shown = repr(g)
    assert round_trips() == 1
    graph = gradwire.current_session().graph(g)
    name = graph["nodes"][graph["roots"][0]["node"]]["name"]
    assert f"grad_fn=<{name}>" in shown
    assert g.grad_fn.name() == name


@pytest.mark.parametrize("shape", [(), (2,), (2, 1), (2, 1, 3), (1, 2, 1, 2)])
def test_a_power_depends_on_its_exponent_whatever_its_shape(shape: tuple[int, ...]) -> None:
    found = []
    for lib in BOTH:
        x, e = (lib.full(shape, value, dtype=lib.float64).requires_grad_() for value in (1.5, 2.5))
        (g,) = lib.autograd.grad((x**e).sum(), x, create_graph=True)
        found.append([second.tolist() for second in lib.autograd.grad(g.sum(), [x, e])])
    assert torch.allclose(torch.tensor(found[1]), torch.tensor(found[0]))


@pytest.mark.parametrize("dim", [-3, -2, -1, 0, 1, 2])
def test_a_joined_tensor_has_a_gradient_of_its_gradient_along_each_dimension(dim: int) -> None:
    found = []
    for lib in BOTH:
        x = lib.ones(2, 3, 2, requires_grad=True)
        joined = lib.cat([x, x * 2], dim)
        (g,) = lib.autograd.grad((joined * joined).sum(), x, create_graph=True)
        found.append((*told(g), [second.sum().item() for second in lib.autograd.grad(g.sum(), x)]))
    assert found[0] == found[1]


def test_a_gradient_does_not_depend_on_itself_by_way_of_weights() -> None:
    for lib in BOTH:
        x, target = (lib.full((2,), value).requires_grad_() for value in (0.3, 0.6))
        loss = lib.nn.functional.binary_cross_entropy(x, target, lib.tensor([1.0, 2.0]))
        (g,) = lib.autograd.grad(loss, target, create_graph=True)
        assert lib.autograd.grad(g.sum(), [x, target], allow_unused=True)[1] is None
