"""Many calls of a compiled function in one message have the same effects as the single calls."""

from __future__ import annotations

import gc

import pytest

import gradwire as torch
from gradwire import nn, optim
from gradwire.nn import functional as F

STEPS = 12


def training(optimizer=optim.SGD, **options):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.BatchNorm1d(8), nn.Linear(8, 3))
    opt = optimizer(model.parameters(), **options)
    data, labels = torch.randn(60, 6), torch.randint(0, 3, (60,))
    order = torch.randperm(60).view(STEPS, 5)

    def step(indices):
        x, y = data[indices], labels[indices]
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        return loss, (out.argmax(1) == y).sum()

    return model, opt, step, order


def seen(model, opt):
    kept = [(p.tolist(), p._version, p.grad.tolist(), p.requires_grad, p.is_leaf) for p in model.parameters()]
    kept += [(b.tolist(), b._version) for b in model.buffers()]
    state = [
        {k: (v.tolist(), v._version) if isinstance(v, torch.Tensor) else v for k, v in opt.state[p].items()}
        for p in model.parameters()
    ]
    return kept, state


OPTIMIZERS = {
    "sgd": (optim.SGD, {"lr": 0.1}),
    "momentum": (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "adamw": (optim.AdamW, {"lr": 0.01}),
    "nadam": (optim.NAdam, {"lr": 0.01}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_epoch_in_one_round_trip_is_the_epoch_step_by_step(name, session, round_trips):
    cls, options = OPTIMIZERS[name]
    model, opt, step, order = training(cls, **options)
    one_by_one = [[t.tolist() for t in step(order[i])] for i in range(STEPS)]
    expected = seen(model, opt)
    model, opt, step, order = training(cls, **options)
    session.synchronize()
    round_trips()
    losses, correct = session.repeat(torch.compile(step), STEPS, torch.each(order))
    assert round_trips() == 0
    assert losses.tolist() == [loss for loss, _ in one_by_one]
    assert correct.tolist() == [count for _, count in one_by_one]
    assert round_trips() in (1, 2)  # the second read may come with the first
    assert losses.shape == (STEPS,)
    assert not losses.requires_grad
    assert seen(model, opt) == expected


def test_a_schedule_moves_on_between_iterations(session):
    outcomes = []
    for repeated in (False, True):
        model, opt, step, order = training(lr=0.1)
        schedule = optim.lr_scheduler.StepLR(opt, 3, 0.5)
        if repeated:
            step = torch.compile(step)
            losses = session.repeat(step, STEPS, torch.each(order), after=schedule.step)[0].tolist()
        else:
            losses = []
            for i in range(STEPS):
                losses.append(step(order[i])[0].item())
                schedule.step()
        outcomes.append((losses, seen(model, opt), schedule.get_last_lr()))
    assert outcomes[0] == outcomes[1]


def test_plain_calls_go_on_where_repeated_ones_ended(session):
    model, opt, step, order = training(optim.Adam, lr=0.01)
    expected = [step(order[i])[0].item() for i in range(STEPS)]
    model, opt, step, order = training(optim.Adam, lr=0.01)
    step = torch.compile(step)
    found = session.repeat(step, 7, torch.each(order))[0].tolist()
    found += [step(order[i])[0].item() for i in range(7, STEPS)]
    assert found == expected


def test_a_loop_longer_than_a_message_may_be_takes_several(session):
    total = torch.zeros(3)

    def step(row):
        with torch.no_grad():
            total.add_(row)
        return total * 2

    compiled = torch.compile(step)
    rows = torch.arange(30.0).view(10, 3)
    compiled(rows[0])
    compiled(rows[0])
    total.zero_()
    limits = session.link.limits
    frames = session.frames
    limits["max_ops_per_frame"], before = 12, limits["max_ops_per_frame"]
    try:
        found = session.repeat(compiled, 10, torch.each(rows))
    finally:
        limits["max_ops_per_frame"] = before
    session.flush()
    assert session.frames - frames > 3
    assert found.tolist() == (rows.cumsum(0) * 2).tolist()


def test_what_an_iteration_leaves_behind_is_released(session):
    w = torch.ones(4)

    @torch.compile
    def step(row):
        return (row * w).sum(), row + w

    rows = torch.ones(20, 4)
    session.repeat(step, 20, torch.each(rows))
    gc.collect()
    session.synchronize()
    session.synchronize()
    before = session.describe()["contents"]["tensors"]
    for _ in range(5):
        session.repeat(step, 20, torch.each(rows))
    gc.collect()
    session.synchronize()
    session.synchronize()
    assert session.describe()["contents"]["tensors"] <= before


def test_an_error_names_the_iteration_and_ends_the_loop(session):
    done = torch.zeros(())

    def step(matrix):
        found = torch.linalg.inv(matrix)  # the line
        with torch.no_grad():
            done.add_(1)
        return found.sum()

    compiled = torch.compile(step)
    many = torch.eye(2).expand(8, 2, 2).clone()
    session.repeat(compiled, 4, torch.each(many)).tolist()
    many[5] = 0
    done.zero_()
    lost = session.repeat(compiled, 8, torch.each(many))
    with pytest.raises(RuntimeError, match=r"iteration 5 of 8") as caught:
        lost.tolist()
    assert f"test_repeat.py:{step.__code__.co_firstlineno + 1}" in str(caught.value)
    assert 5 <= done.item() <= 6
    assert compiled(torch.eye(2)).item() == 2


def test_only_what_is_compiled_is_repeated(session):
    with pytest.raises(TypeError, match="compiled"):
        session.repeat(lambda: torch.ones(2), 3)
    with pytest.raises(ValueError, match="at least 1"):
        session.repeat(torch.compile(lambda: torch.ones(2)), 0)
    with pytest.raises(ValueError, match="need 5 rows"):
        session.repeat(torch.compile(lambda x: x * 2), 5, torch.each(torch.ones(4)))
    with pytest.raises(ValueError, match="require grad"):
        torch.each(torch.ones(4, requires_grad=True))
    with pytest.raises(TypeError):
        torch.each([1, 2])


def test_what_cannot_be_replayed_cannot_be_repeated_and_the_error_says_why(session):
    compiled = torch.compile(lambda x: x * x.sum().item())
    with pytest.raises(RuntimeError, match="reads a value"):
        session.repeat(compiled, 9, torch.each(torch.ones(9, 2)))


def test_a_step_that_keeps_a_state_in_python_cannot_be_repeated(session):
    class Runner:
        h = None

        def __init__(self):
            self.h = torch.zeros(2)

        def __call__(self, x):
            self.h = self.h + x
            return self.h.sum()

    runner = torch.compile(Runner())
    with pytest.raises(RuntimeError, match="it sets"):
        session.repeat(runner, 9, torch.each(torch.ones(9, 2)))


def test_an_optimizer_remembers_nothing_of_a_loop_that_was_refused(session):
    model, opt, step, order = training(optim.Adam, lr=0.01)
    compiled = torch.compile(step)
    for i in range(3):
        compiled(order[i])
    before = [opt.state[p]["step"] for p in model.parameters()]

    def grow():
        opt.param_groups[0]["amsgrad"] = True

    with pytest.raises(RuntimeError, match="something else in iteration 1"):
        session.repeat(compiled, 6, torch.each(order), after=grow)
    assert [opt.state[p]["step"] for p in model.parameters()] == before
