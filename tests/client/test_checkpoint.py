"""Checkpointing: the same values and gradients, less memory, and a second call of the function in backward."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import pytest
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

claim = Claims()


def checkpointing(torch: Any) -> Any:
    return import_module(f"{torch.__name__}.utils.checkpoint")


def each_form(torch: Any, run: Any) -> Any:
    """A claim for both forms of checkpoint."""
    checkpoint = checkpointing(torch).checkpoint
    return [
        run(lambda f, *args, form=form, **kwargs: checkpoint(f, *args, use_reentrant=form, **kwargs))
        for form in (False, True)
    ]


@claim
def gradients_are_those_of_the_plain_function_and_it_runs_twice(torch: Any) -> Any:
    def run(checkpoint: Any) -> Any:
        calls = []
        w = torch.tensor([3.0, 4.0], requires_grad=True)

        def function(x: Any, y: Any) -> Any:
            calls.append(len(calls))
            return (x * y * w).sin().exp()

        x, y = torch.tensor([0.1, 0.2], requires_grad=True), torch.tensor([0.3, 0.4])
        z = checkpoint(function, x, y)
        (z * 2).sum().backward()
        return z, x.grad, w.grad, y.grad, calls

    return each_form(torch, run)


@claim
def several_results_some_of_them_unused(torch: Any) -> Any:
    def run(checkpoint: Any) -> Any:
        x = torch.tensor([0.1, 0.2], requires_grad=True)
        a, b, n = checkpoint(lambda x: (x.exp(), x.sin(), 7), x)
        b.sum().backward()
        return a, b, n, x.grad

    return each_form(torch, run)


@claim
def nested_checkpoints(torch: Any) -> Any:
    def run(checkpoint: Any) -> Any:
        calls = []

        def inner(x: Any) -> Any:
            calls.append("inner")
            return x.sin().exp()

        def outer(x: Any) -> Any:
            calls.append("outer")
            return checkpoint(inner, checkpoint(inner, x * 2).cos()) * x

        x = torch.tensor([0.1, 0.2], requires_grad=True)
        checkpoint(outer, x).sum().backward()
        return x.grad, len(calls) > 3

    return each_form(torch, run)


@claim
def a_graph_kept_is_run_again(torch: Any) -> Any:
    checkpoint = checkpointing(torch).checkpoint
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    z = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum()
    z.backward(retain_graph=True)
    first = x.grad.clone()
    z.backward()
    return first, x.grad, raises(z.backward)


@claim
def grad_and_inputs_need_the_form_that_is_not_reentrant(torch: Any) -> Any:
    def run(checkpoint: Any) -> Any:
        x = torch.tensor([0.1, 0.2], requires_grad=True)
        attempts = (
            lambda: torch.autograd.grad(checkpoint(lambda x: x.sin().exp(), x).sum(), x)[0],
            lambda: checkpoint(lambda x: x.sin().exp(), x).sum().backward(inputs=[x]),
        )
        return [raises(attempt) for attempt in attempts], x.grad

    return each_form(torch, run)


@claim
def double_backward_through_a_checkpoint(torch: Any) -> Any:
    checkpoint = checkpointing(torch).checkpoint
    x = torch.tensor([0.1, 0.2], requires_grad=True, dtype=torch.float64)
    z = checkpoint(lambda x: x.sin() * x, x, use_reentrant=False).sum()
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g.tolist(), h.tolist()


@claim
def an_argument_that_is_changed_in_place_before_backward_is_an_error(torch: Any) -> Any:
    def attempt(form: bool, change: Any, among: int) -> Any:
        constant, x = torch.arange(3.0), torch.ones(3, requires_grad=True) * 2
        out = checkpointing(torch)(lambda a, b: (a * b).sin(), constant[:], x, use_reentrant=form)
        change((constant, x)[among])
        return raises(lambda: out.sum().backward())

    changes = (lambda t: t.add_(1), lambda t: t[:1].zero_(), lambda t: t.data.add_(1), lambda t: t.detach().add_(1))
    return [attempt(form, change, among) for form in (False, True) for change in changes for among in (0, 1)]


@claim
def other_operations_in_the_second_run_are_an_error(torch: Any) -> Any:
    found = []
    for other in (lambda x: x.sin().sin(), lambda x: x.exp()[:1]):
        calls: list[int] = []

        def function(x: Any, calls: list[int] = calls, other: Any = other) -> Any:
            calls.append(1)
            return x.sin().exp() if len(calls) == 1 else other(x).exp()

        x = torch.tensor([0.1, 0.2], requires_grad=True)
        module = checkpointing(torch)
        z = module.checkpoint(function, x, use_reentrant=False).sum()
        try:
            z.backward()
            found.append(None)
        except module.CheckpointError:
            found.append("CheckpointError")
    return found[1]


@claim
def a_custom_function_inside(torch: Any) -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x**3
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * 3 * y / x

    def run(checkpoint: Any) -> Any:
        x = torch.tensor([0.1, 0.2], requires_grad=True)
        checkpoint(lambda x: Cube.apply(x.exp()).sin(), x).sum().backward()
        return x.grad

    return each_form(torch, run)


@claim
def sequential_segments(torch: Any) -> Any:
    found = []
    for form in (False, True):
        layers = [torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3), torch.nn.Sigmoid()]
        for layer in (layers[0], layers[2]):
            with torch.no_grad():
                layer.weight.copy_(torch.arange(9.0).reshape(3, 3) / 9)
                layer.bias.fill_(0.1)
        x = torch.arange(6.0).reshape(2, 3).div(6).requires_grad_()
        model = torch.nn.Sequential(*layers)
        checkpointing(torch).checkpoint_sequential(model, 2, x, use_reentrant=form).sum().backward()
        found.append((x.grad, layers[0].weight.grad, layers[2].bias.grad))
    return found


@claim
def arguments_are_checked_and_the_default_warns(torch: Any) -> Any:
    checkpoint = checkpointing(torch).checkpoint
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint(lambda x: x * 1, x)
        checkpoint(lambda x: x * 1, torch.ones(2), use_reentrant=True)
    return (
        len(caught), raises(lambda: checkpoint(lambda x: x, x, use_reentrant=True, other=1)),
        raises(lambda: checkpoint(lambda x: x, x, use_reentrant=True, debug=True)),
        checkpoint(lambda x, k: x * k, x, use_reentrant=False, k=3),
    )  # fmt: skip


@pytest.mark.parametrize("run", claim.all, ids=name_of)
def test_as_in_pytorch(run: Any) -> None:
    same(run)


@pytest.mark.parametrize("form", [False, True])
def test_random_numbers_are_those_of_the_first_run(form: bool) -> None:
    gradwire.manual_seed(3)
    x = gradwire.ones(1000, requires_grad=True)
    z = gradwire.utils.checkpoint.checkpoint(
        lambda x: gradwire.nn.functional.dropout(x * 3, 0.5), x, use_reentrant=form
    )
    after = gradwire.rand(4)
    z.sum().backward()
    assert gradwire.equal(x.grad, z.detach())
    again = gradwire.rand(4)
    assert not gradwire.equal(after, again)


@pytest.mark.parametrize("form", [False, True])
def test_a_checkpointed_segment_costs_no_round_trip(form: bool, round_trips: Any) -> None:
    x = gradwire.ones(100, requires_grad=True)
    y = x
    for _ in range(4):
        y = gradwire.utils.checkpoint.checkpoint(lambda y: (y * 0.5).sin().exp(), y, use_reentrant=form)
    y.sum().backward()
    assert round_trips() == 0
    x.grad.sum().item()
    assert round_trips() == 1


@pytest.mark.parametrize("form", [False, True])
def test_a_checkpoint_keeps_less(form: bool, session: Any) -> None:
    def function(y: Any) -> Any:
        for _ in range(10):
            y = y.sin()
        return y

    def held(run: Any) -> int:
        x = gradwire.ones(10_000, requires_grad=True)
        before = session.memory()["live_bytes"]
        y = run(x)
        found = session.memory()["live_bytes"] - before
        y.sum().backward()
        return found

    plain = held(function)
    kept = held(lambda x: gradwire.utils.checkpoint.checkpoint(function, x, use_reentrant=form))
    assert plain >= 10 * 40_000
    assert kept <= 2 * 40_000
