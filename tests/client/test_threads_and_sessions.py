"""Several threads and sessions in one program: modes, graphs, and tensors that must not be mixed."""

from __future__ import annotations

import threading

import pytest
from tests.side_by_side import Claims, name_of, same

import gradwire
from gradwire._core.session import current_session

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *values):
    return torch.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


def state(torch):
    """What the modes say, and what becomes of an operation."""
    made = leaf(torch) * 2
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), made.requires_grad, made.is_inference()


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
    before = current_session._current
    opened = gradwire.connect()
    yield gradwire.ones(2, requires_grad=True)
    opened.close()
    current_session._current = before


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
    "grad that materializes": lambda here, there: gradwire.autograd.grad(here.sum(), there, materialize_grads=True),
    "one of grad's inputs": lambda here, there: gradwire.autograd.grad(here.sum(), [here, there], allow_unused=True),
    "grad_outputs": lambda here, there: gradwire.autograd.grad(here * 2, here, there),
    "an assigned grad": lambda here, there: setattr(here, "grad", there.detach()),
    "assigned data": lambda here, there: setattr(here, "data", there.detach()),
    "a comparison": lambda here, there: gradwire.equal(here, there),
}


@pytest.mark.parametrize("what", MIXTURES)
def test_a_tensor_of_another_session_is_refused(what, two_sessions):
    here_session = current_session._current
    other = gradwire.open_session()
    current_session._current = other
    there = gradwire.ones(2, requires_grad=True)
    current_session._current = here_session
    with pytest.raises(RuntimeError, match="different sessions"):
        MIXTURES[what](two_sessions, there)
    assert (two_sessions * 2).tolist() == [2.0, 2.0] and (there * 3).tolist() == [3.0, 3.0]
    other.close()


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
