"""Optimizing through an optimizer: ``differentiable=True`` against torch, parameters, states and their gradients.

An option may be learnt, too. Where torch refuses that, its steps with the option a little larger and a little smaller
say what the gradient is.
"""

from __future__ import annotations

import warnings

import pytest
import torch
from tests.side_by_side import same

import gradwire

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


WEIGHTS, STEP = [1.0, 2.0, 3.0], 1e-5

LEARNT = [  # an optimizer, the options that are learnt, other options, whether torch learns them
    ("SGD", dict(lr=0.1), {}, True),
    ("SGD", dict(lr=0.1), dict(momentum=0.9, nesterov=True, weight_decay=0.1), True),
    ("SGD", dict(momentum=0.9), dict(lr=0.1, nesterov=True), False),
    ("SGD", dict(dampening=0.2), dict(lr=0.1, momentum=0.9), False),
    ("SGD", dict(weight_decay=0.1), dict(lr=0.1), False),
    ("SGD", dict(lr=0.1), dict(momentum=0.9, maximize=True), False),
    ("Adam", dict(lr=0.1), dict(amsgrad=True, weight_decay=0.1), False),
    ("Adam", dict(betas=(0.8, 0.9)), {}, True),
    ("Adam", dict(lr=0.1, weight_decay=0.1, betas=(0.8, 0.9)), {}, False),
    ("AdamW", dict(lr=0.1, weight_decay=0.2, betas=(0.8, 0.9)), {}, True),
    ("Adamax", dict(lr=0.1, weight_decay=0.1, betas=(0.8, 0.9)), {}, False),
    ("NAdam", dict(lr=0.1, weight_decay=0.1, betas=(0.8, 0.9), momentum_decay=0.01), {}, False),
    ("NAdam", dict(lr=0.1, weight_decay=0.1), dict(decoupled_weight_decay=True), False),
    ("RAdam", dict(lr=0.1), {}, True),
    ("RAdam", dict(lr=0.1, weight_decay=0.1, betas=(0.5, 0.9)), dict(steps=7), False),
    ("RMSprop", dict(lr=0.1, weight_decay=0.1, alpha=0.9), dict(centered=True), False),
    ("RMSprop", dict(lr=0.1, momentum=0.8), {}, False),
    ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.1), {}, False),
    ("Adadelta", dict(lr=0.9, weight_decay=0.1, rho=0.8), {}, False),
    ("Rprop", dict(lr=0.1, etas=(0.4, 1.3)), {}, False),
    ("ASGD", dict(weight_decay=0.1), dict(lr=0.1), False),
]


def total(lib, name: str, options: dict):
    """A number made of a parameter after some steps."""
    p = lib.tensor([0.3, -0.8, 1.1], dtype=lib.float64, requires_grad=True).clone()
    steps = options.pop("steps", 3)
    made = getattr(lib.optim, name)([p], differentiable=True, **options)
    for i in range(steps):
        g = ([0.5, -0.4, 0.2], [0.7, 0.1, -0.3], [0.1, 0.6, 0.4])[i % 3]
        p.grad = lib.tensor(g, dtype=lib.float64, requires_grad=True)
        made.step()
    return (p * lib.tensor(WEIGHTS, dtype=lib.float64)).sum()


def flat(options: dict) -> list:
    return [one for value in options.values() for one in (value if isinstance(value, tuple) else (value,))]


def refilled(options: dict, values: list) -> dict:
    rest = iter(values)
    return {k: tuple(next(rest) for _ in v) if isinstance(v, tuple) else next(rest) for k, v in options.items()}


def learnt_gradients(lib, name: str, learnt: dict, others: dict):
    leaves = [lib.tensor(value, dtype=lib.float64, requires_grad=True) for value in flat(learnt)]
    return lib.autograd.grad(total(lib, name, {**others, **refilled(learnt, leaves)}), leaves)


def slopes(name: str, learnt: dict, others: dict) -> list[float]:
    found, values = [], flat(learnt)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # torch's counts are rounded to it
    try:
        for i in range(len(values)):
            ends = [
                total(torch, name, {**others, **refilled(learnt, [*values[:i], values[i] + by, *values[i + 1 :]])})
                for by in (-STEP, STEP)
            ]
            found.append((ends[1] - ends[0]).item() / (2 * STEP))
    finally:
        torch.set_default_dtype(before)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, learnt, others, under_torch", LEARNT, ids=str)
def test_an_option_that_requires_grad_gets_the_gradient_of_the_steps(name, learnt, others, under_torch):
    found = [g.item() for g in learnt_gradients(gradwire, name, learnt, others)]
    assert found == pytest.approx(slopes(name, learnt, others), rel=1e-4, abs=1e-6)
    if under_torch:
        assert found == pytest.approx([g.item() for g in learnt_gradients(torch, name, learnt, others)], rel=1e-6)


def test_a_learnt_option_is_not_needed_where_a_step_is_not_differentiated():
    def course(lib):
        p = lib.tensor([0.3, -0.8], requires_grad=True)
        rate = lib.tensor(0.1, requires_grad=True)
        made = lib.optim.SGD([p], lr=rate)
        p.grad = lib.ones(2)
        made.step()
        return p, rate.grad

    same(course)


def test_a_state_of_tensors_with_history_is_differentiated():
    def course(lib):
        made = lib.tensor([0.3, -0.8], dtype=lib.float64, requires_grad=True)
        p, state = made.clone(), lib.tensor(1.0, dtype=lib.float64, requires_grad=True)
        p.grad = lib.ones(2, dtype=lib.float64)
        optimizer = lib.optim.NAdam([p], lr=0.1, differentiable=True)
        moments = {k: lib.full((2,), 0.5, dtype=lib.float64) for k in ("exp_avg", "exp_avg_sq")}
        optimizer.state[p].update(step=lib.tensor(10.0), mu_product=state.clone(), **moments)
        optimizer.step()
        return lib.autograd.grad(p.prod(), [made, state])

    same(course)
