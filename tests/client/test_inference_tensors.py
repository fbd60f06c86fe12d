"""Uses of tensors that were made in inference mode, under torch and gradwire."""

from __future__ import annotations

import copy

import pytest
from tests.side_by_side import raises, same

pytestmark = pytest.mark.usefixtures("session")


def leaf(torch, *values):
    return torch.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


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
