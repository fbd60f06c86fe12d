"""Grad modes: with, decorators, functions, nesting in any order, under torch and gradwire."""

from __future__ import annotations

import itertools

import pytest
from tests.side_by_side import Claims, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *values):
    return torch.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


def state(torch):
    """What the modes say, and what becomes of an operation."""
    made = leaf(torch) * 2
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), made.requires_grad, made.is_inference()


MODES = {
    "no_grad": lambda t: t.no_grad(),
    "enable_grad": lambda t: t.enable_grad(),
    "set_grad_enabled(True)": lambda t: t.set_grad_enabled(True),
    "set_grad_enabled(False)": lambda t: t.set_grad_enabled(False),
    "inference_mode": lambda t: t.inference_mode(),
    "inference_mode(False)": lambda t: t.inference_mode(False),
}


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(MODES, MODES)))
def test_modes_nest_in_any_order(outer, inner):
    def attempt(torch):
        seen = [state(torch)]
        with MODES[outer](torch):
            seen.append(state(torch))
            with MODES[inner](torch):
                seen.append(state(torch))
            seen.append(state(torch))
        return [*seen, state(torch)]

    same(attempt)


@pytest.mark.parametrize("mode", MODES)
def test_modes_as_decorators(mode):
    def attempt(torch):
        @MODES[mode](torch)
        def function(scale, *, shift=0):
            """What it does."""
            return state(torch), scale + shift

        @MODES[mode](torch)
        def generator():
            got = yield state(torch)
            yield got, state(torch)
            return "end"

        class Model:
            @MODES[mode](torch)
            def method(self):
                return state(torch)

        running = generator()
        seen = [next(running), state(torch), running.send("sent"), state(torch)]
        return function(1, shift=2), function.__name__, function.__doc__, seen, Model().method(), state(torch)

    same(attempt)


@claim
def decorators_without_parentheses(torch):
    @torch.no_grad
    def without():
        return state(torch)

    @torch.enable_grad
    def with_grad():
        return state(torch)

    @torch.inference_mode
    def inferring():
        return state(torch)

    with torch.no_grad():
        enabled = with_grad()
    return without(), enabled, inferring(), state(torch)


@claim
def a_decorated_class(torch):
    @torch.no_grad()
    class Model:
        def __init__(self):
            self.made = state(torch)

    return Model().made, state(torch)


@claim
def a_decorated_generator_that_is_closed(torch):
    seen = []

    @torch.no_grad()
    def generator():
        try:
            yield state(torch)
        finally:
            seen.append(state(torch))

    running = generator()
    first = next(running)
    running.close()
    return first, seen, state(torch)


@claim
def a_decorated_generator_that_is_thrown_into(torch):
    @torch.no_grad()
    def generator():
        try:
            yield 1
        except KeyError:
            yield state(torch)

    running = generator()
    next(running)
    return running.throw(KeyError()), state(torch)


@claim
def a_generator_that_enters_a_mode_itself(torch):
    def generator():
        with torch.no_grad():
            yield state(torch)

    running = generator()
    return next(running), list(running), state(torch)


@claim
def arrays_of_what_requires_grad_are_had_where_nothing_is_recorded(torch):
    x = leaf(torch, 1.0, 2.0)
    found = []
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            view = x[:1]
            found += [
                x.numpy().tolist(),
                (x[:1]).numpy().tolist(),
                x.view(2, 1).__array__().tolist(),
                view.requires_grad,
            ]
    return found


@claim
def an_exception_restores_the_mode(torch):
    for mode in MODES.values():
        try:
            with mode(torch):
                raise KeyError
        except KeyError:
            pass
    return state(torch)


@claim
def set_grad_enabled_as_a_function(torch):
    seen = []
    torch.set_grad_enabled(False)
    seen.append(state(torch))
    torch.set_grad_enabled(True)
    return [*seen, state(torch)]


@claim
def set_grad_enabled_inside_a_mode_ends_with_it(torch):
    with torch.no_grad():
        torch.set_grad_enabled(True)
        inside = state(torch)
    return inside, state(torch)


@claim
def names_of_modules(torch):
    names = ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled")
    return [getattr(torch.autograd.grad_mode, name).__name__ for name in names], [
        getattr(torch.autograd, name) is getattr(torch.autograd.grad_mode, name) for name in names
    ], torch.autograd.no_grad is torch.no_grad, torch.autograd.anomaly_mode.detect_anomaly.__name__  # fmt: skip


@claim
def multithreading_can_be_asked_for(torch):
    x = leaf(torch)
    with torch.autograd.set_multithreading_enabled(False):
        (x * x).sum().backward()
    torch.autograd.set_multithreading_enabled(True)
    return x.grad


@claim
def multithreading_as_a_decorator(torch):
    @torch.autograd.grad_mode.set_multithreading_enabled(False)
    def gradient():
        x = leaf(torch)
        (x * x).sum().backward()
        return x.grad

    return gradient()


@claim
def the_mode_of_the_call_counts_not_that_of_backward(torch):
    x = leaf(torch)
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    return y.requires_grad, z.requires_grad, torch.autograd.grad(z.sum(), x)


@claim
def leaves_made_in_no_grad_may_require_grad(torch):
    with torch.no_grad():
        x = torch.ones(2, requires_grad=True)
        y = torch.ones(2).requires_grad_()
        z = x * 2
    (x * y).sum().backward()
    return x.grad, y.grad, z.requires_grad


@claim
def anomaly_mode_asks(torch):
    before = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        inside = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    return before, inside, torch.is_anomaly_enabled()


@claim
def detect_anomaly_warns_that_it_is_on(torch):
    x = leaf(torch)
    with torch.autograd.detect_anomaly():
        (x * x).sum().backward()
    return x.grad, torch.is_anomaly_enabled()


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
