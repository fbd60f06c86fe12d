"""Optimizing through an optimizer: ``differentiable=True`` against torch, parameters, states and their gradients."""

from __future__ import annotations

import warnings

import pytest
from tests.side_by_side import same

CONFIGURATIONS = [
    ("SGD", dict(lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.4, maximize=True)),
    ("Adam", dict(lr=0.1, weight_decay=0.1)),
    ("Adam", dict(lr=0.1, amsgrad=True, maximize=True)),
    ("AdamW", dict(lr=0.1, weight_decay=0.2)),
    ("Adamax", dict(lr=0.1, weight_decay=0.1)),
    ("NAdam", dict(lr=0.1, weight_decay=0.1)),
    ("NAdam", dict(lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)),
    ("RAdam", dict(lr=0.1, weight_decay=0.1, betas=(0.5, 0.6))),
    ("RAdam", dict(lr=0.1)),
    ("RMSprop", dict(lr=0.1, momentum=0.9, centered=True, weight_decay=0.1)),
    ("RMSprop", dict(lr=0.1)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.1)),
    ("Adadelta", dict(lr=0.9, weight_decay=0.1)),
    ("Rprop", dict(lr=0.1)),
    ("ASGD", dict(lr=0.1, weight_decay=0.1, t0=0)),
]


def through(lib, name: str, options: dict, steps: int):
    """Some steps from a computed parameter; the gradients of what comes out for all that went in."""
    start = lib.tensor([0.3, -0.8, 1.1], dtype=lib.float64, requires_grad=True)
    given = [
        lib.tensor(g, dtype=lib.float64, requires_grad=True)
        for g in ([0.5, -0.4, 0.2], [0.7, 0.1, -0.3], [0.1, 0.6, 0.4])
    ]
    p = start.clone()
    made = getattr(lib.optim, name)([p], differentiable=True, **options)
    for g in given[:steps]:
        p.grad = g
        made.step()
    total = (p * lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)).sum()
    gradients = lib.autograd.grad(total, [start, *given], allow_unused=True)
    states = {k: v.detach() for k, v in made.state[p].items() if hasattr(v, "detach") and v.ndim}
    return p.detach(), gradients, states


# Where a second step changes what the first has saved, backward is refused, under torch as here.
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name, options", CONFIGURATIONS, ids=str)
def test_a_step_is_differentiated_as_under_torch(name, options, steps):
    def course(lib):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return through(lib, name, options, steps)

    same(course)
