"""Grad modes: with, decorators, functions, nesting, threads, sessions, inference tensors, under torch and gradwire."""

from __future__ import annotations

import copy
import itertools
import threading

import pytest
from tests.side_by_side import Claims, name_of, raises, same

import gradwire
from gradwire import sessions

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


# Inference tensors


def inference(torch, make=None):
    with torch.inference_mode():
        return (make or (lambda: torch.ones(3) * 2))()


INFERENCE = {
    "is inference": lambda t: (inference(t).is_inference(), t.is_inference(inference(t)), t.ones(2).is_inference()),
    "computing with it": lambda t: (inference(t) * 2, (inference(t) * 2).is_inference()),
    "adding it to what requires grad": lambda t: leaf(t) + inference(t),
    "multiplying it with what requires grad": lambda t: leaf(t) * inference(t),
    "multiplying its clone": lambda t: leaf(t) * inference(t).clone(),
    "backward through an addition": lambda t: backward_of_sum(t),
    "writing to it": lambda t: inference(t).add_(1),
    "writing to it by index": lambda t: inference(t).__setitem__(0, 1.0),
    "writing to it in no_grad": lambda t: t.no_grad()(lambda: inference(t).add_(1))(),
    "writing to its view": lambda t: inference(t)[1:].add_(1),
    "writing to it in inference mode": lambda t: inference(t, lambda: t.ones(2).add_(1)),
    "writing to it in a later inference mode": lambda t: later(t),
    "its view": lambda t: (inference(t)[1:], inference(t)[1:].is_inference(), inference(t)[1:]._is_view()),
    "its detached self": lambda t: inference(t).detach().is_inference(),
    "its clone": lambda t: (inference(t).clone().is_inference(), inference(t).clone().requires_grad_()),
    "its copy by deepcopy": lambda t: copy.deepcopy(inference(t)).tolist(),
    "requiring grad outside": lambda t: inference(t).requires_grad_(),
    "requiring grad outside by attribute": lambda t: setattr(inference(t), "requires_grad", True),
    "not requiring grad outside": lambda t: inference(t).requires_grad_(False),
    "requiring grad inside": lambda t: inference(t, lambda: t.ones(2).requires_grad_().requires_grad),
    "made with requires_grad": lambda t: inference(t, lambda: t.ones(2, requires_grad=True).requires_grad),
    "its version": lambda t: inference(t)._version,
    "a write to a normal tensor inside": lambda t: normal_written(t),
    "a saved normal tensor written inside": lambda t: saved_written(t),
    "a view of a normal tensor made inside": lambda t: normal_view(t),
    "a write to a view made inside": lambda t: normal_view_written(t),
    "a write inside to a view made inside": lambda t: normal_view_written_inside(t),
    "a view made inside of what requires grad": lambda t: inference(t, lambda: leaf(t)[1:].requires_grad),
    "copying it into a normal tensor": lambda t: t.zeros(3).copy_(inference(t)),
    "copying it into a result": lambda t: (leaf(t) * 1).copy_(inference(t)),
    "indexing with it": lambda t: leaf(t)[inference(t, lambda: t.tensor([0, 2]))],
    "comparing with it": lambda t: leaf(t) > inference(t),
    "cat with what requires grad": lambda t: t.cat([leaf(t), inference(t)]),
    "backward inside": lambda t: backward_inside(t),
    "enable_grad inside": lambda t: enabled_inside(t),
    "data of it": lambda t: inference(t).data.is_inference(),
    "in a module outside": lambda t: t.nn.functional.relu(inference(t)),
    "its numpy": lambda t: inference(t).numpy().tolist(),
    "setting its grad": lambda t: setattr(inference(t), "grad", t.ones(3)),
}


def backward_of_sum(torch):
    x = leaf(torch)
    (x + inference(torch)).sum().backward()
    return x.grad


def later(torch):
    x = inference(torch)
    with torch.inference_mode():
        x.add_(1)
    return x


def normal_written(torch):
    x = torch.ones(3)
    with torch.inference_mode():
        x.add_(1)
        inside = x.is_inference()
    return x, inside, x._version, leaf(torch) * x


def saved_written(torch):
    x = leaf(torch)
    y = x * 1
    z = (y * y).sum()
    with torch.inference_mode():
        y.add_(1)
    z.backward()
    return x.grad


def normal_view(torch):
    x = torch.ones(3)
    with torch.inference_mode():
        view = x[1:]
    return view, view.is_inference(), view._is_view(), view * leaf(torch, 1.0, 2.0)


def normal_view_written(torch):
    x = leaf(torch) * 1
    with torch.inference_mode():
        view = x[1:]
    view.add_(1)
    return view


def normal_view_written_inside(torch):
    x = leaf(torch) * 1
    with torch.inference_mode():
        view = x[1:]
        view.add_(1)
    return x


def backward_inside(torch):
    x = leaf(torch)
    y = (x * x).sum()
    with torch.inference_mode():
        y.backward()
    return x.grad is None, raises(lambda: x.grad.add_(1))


def enabled_inside(torch):
    with torch.inference_mode(), torch.enable_grad():
        made = leaf(torch) * 2
        return made.requires_grad, made.is_inference(), torch.is_grad_enabled()


@pytest.mark.parametrize("what", INFERENCE)
def test_inference_tensors(what):
    same(INFERENCE[what])


# Threads and sessions


@claim
def modes_are_of_a_thread(torch):
    seen = []

    def look():
        seen.append(state(torch))
        torch.set_grad_enabled(False)
        seen.append(state(torch))

    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
    return seen, state(torch)


@claim
def threads_differentiate_at_the_same_time(torch):
    shared = leaf(torch)
    found = {}

    def work(number):
        x = leaf(torch)
        for _ in range(5):
            (x * number + shared.detach()).sum().backward()
        found[number] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(sorted(found.items()))


@claim
def threads_accumulate_into_one_leaf(torch):
    shared = leaf(torch)

    def work():
        for _ in range(5):
            (shared * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return shared.grad


@claim
def a_graph_made_in_one_thread_goes_backward_in_another(torch):
    x = leaf(torch)
    y = (x * x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    return x.grad


@pytest.fixture
def two_sessions():
    before = sessions._current
    opened = gradwire.connect()
    yield gradwire.ones(2, requires_grad=True)
    opened.close()
    sessions._current = before


MIXTURES = {
    "an operation": lambda here, there: here * there,
    "a list": lambda here, there: gradwire.cat([here, there]),
    "a write": lambda here, there: (here * 1).add_(there),
    "an assignment by index": lambda here, there: (here * 1).__setitem__(slice(None), there),
    "an index": lambda here, there: here[there.detach().long()],
    "a gradient": lambda here, there: (here * 2).backward(there),
    "two roots": lambda here, there: gradwire.autograd.backward([here.sum(), there.sum()]),
    "inputs": lambda here, there: here.sum().backward(inputs=[there]),
    "grad": lambda here, there: gradwire.autograd.grad(here.sum(), there, allow_unused=True),
    "grad_outputs": lambda here, there: gradwire.autograd.grad(here * 2, here, there),
    "an assigned grad": lambda here, there: setattr(here, "grad", there.detach()),
    "assigned data": lambda here, there: setattr(here, "data", there.detach()),
    "a comparison": lambda here, there: gradwire.equal(here, there),
}


@pytest.mark.parametrize("what", MIXTURES)
def test_a_tensor_of_another_session_is_refused(what, two_sessions):
    here_session = sessions._current
    other = gradwire.open_session()
    sessions._current = other
    there = gradwire.ones(2, requires_grad=True)
    sessions._current = here_session
    with pytest.raises(RuntimeError, match="session"):
        MIXTURES[what](two_sessions, there)
    assert (two_sessions * 2).tolist() == [2.0, 2.0] and (there * 3).tolist() == [3.0, 3.0]
    other.close()


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
