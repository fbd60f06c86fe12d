"""``gradwire.optim`` against ``torch.optim``: the same steps on the same parameters with the same gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire as gw

TOLERANCE = dict(rtol=1e-12, atol=1e-13)
SHAPES = ((3, 4), (4,), ())


def values(tensor) -> np.ndarray:
    return tensor.detach().numpy()


def start() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.normal(size=shape) for shape in SHAPES]


def gradients(step: int) -> list[np.ndarray]:
    generator = np.random.default_rng(100 + step)
    return [generator.normal(size=shape) for shape in SHAPES]


def parameters() -> tuple[list, list]:
    """The same float64 parameters twice: ours and torch's."""
    ours = [gw.nn.Parameter(gw.tensor(v)) for v in start()]
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in start()]
    return ours, theirs


def give_gradients(ours: list, theirs: list, step: int, skip: tuple[int, ...] = ()) -> None:
    """Gradients by backward, so that they arrive the way they do in a program."""
    for i, gradient in enumerate(gradients(step)):
        if i not in skip:
            (ours[i] * gw.tensor(gradient)).sum().backward()
            (theirs[i] * torch.tensor(gradient)).sum().backward()


def agree(ours: list, theirs: list) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(values(a), values(b), **TOLERANCE)


OPTIMIZERS = [
    ("SGD", dict(lr=0.1)),
    ("SGD", dict(lr=0.1, weight_decay=0.3)),
    ("SGD", dict(lr=0.1, momentum=0.9)),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.4, weight_decay=0.01)),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
    ("SGD", dict(lr=0.1, momentum=0.5, maximize=True)),
    ("Adam", dict(lr=0.1)),
    ("Adam", dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2)),
    ("Adam", dict(lr=0.1, amsgrad=True)),
    ("Adam", dict(lr=0.1, maximize=True)),
    ("Adam", dict(lr=0.1, weight_decay=0.2, decoupled_weight_decay=True)),
    ("AdamW", dict(lr=0.1)),
    ("AdamW", dict(lr=0.1, weight_decay=0.3, amsgrad=True)),
    ("RMSprop", dict(lr=0.05)),
    ("RMSprop", dict(lr=0.05, alpha=0.9, momentum=0.9, centered=True, weight_decay=0.1)),
    ("RMSprop", dict(lr=0.05, maximize=True)),
    ("Adagrad", dict(lr=0.1)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.5)),
]
NAMED = [pytest.param(name, options, id=f"{name}({options})") for name, options in OPTIMIZERS]


def made(name: str, options: dict, ours: list, theirs: list) -> tuple:
    return getattr(gw.optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)


@pytest.mark.parametrize("name, options", NAMED)
def test_steps_agree_with_torchs(name, options):
    ours, theirs = parameters()
    our_one, their_one = made(name, options, ours, theirs)
    for step in range(5):
        give_gradients(ours, theirs, step)
        our_one.step()
        their_one.step()
        our_one.zero_grad()
        their_one.zero_grad()
        agree(ours, theirs)


@pytest.mark.parametrize("name, options", NAMED)
def test_a_parameter_without_a_gradient_is_left_alone(name, options):
    ours, theirs = parameters()
    our_one, their_one = made(name, options, ours, theirs)
    for step, skip in enumerate([(1,), (), (0, 2), (0, 1, 2), ()]):
        give_gradients(ours, theirs, step, skip)
        our_one.step()
        their_one.step()
        our_one.zero_grad()
        their_one.zero_grad()
        agree(ours, theirs)


@pytest.mark.parametrize("name, options", NAMED)
def test_a_saved_optimizer_goes_on_as_if_never_stopped(name, options):
    ours, theirs = parameters()
    our_one, their_one = made(name, options, ours, theirs)
    for step in range(2):
        give_gradients(ours, theirs, step)
        our_one.step()
        their_one.step()
        our_one.zero_grad()
        their_one.zero_grad()
    resumed = getattr(gw.optim, name)(ours, lr=7.0)
    resumed.load_state_dict(our_one.state_dict())
    del our_one
    for step in range(2, 4):
        give_gradients(ours, theirs, step)
        resumed.step()
        their_one.step()
        resumed.zero_grad()
        their_one.zero_grad()
        agree(ours, theirs)


@pytest.mark.parametrize("name, options", NAMED)
def test_state_has_torchs_form_and_torch_can_go_on_from_it(name, options):
    ours, theirs = parameters()
    our_one, their_one = made(name, options, ours, theirs)
    give_gradients(ours, theirs, 0)
    our_one.step()
    their_one.step()
    found, expected = our_one.state_dict(), their_one.state_dict()
    assert found["param_groups"] == expected["param_groups"]
    assert {n: set(kept) for n, kept in found["state"].items()} == {
        n: {k for k, v in kept.items() if v is not None} for n, kept in expected["state"].items()
    }
    translated = {
        n: {k: torch.tensor(v.numpy() if isinstance(v, gw.Tensor) else float(v)) for k, v in kept.items()}
        for n, kept in found["state"].items()
    }
    their_one.load_state_dict({"state": translated, "param_groups": found["param_groups"]})
    our_one.load_state_dict({"state": _as_arrays(expected["state"]), "param_groups": expected["param_groups"]})
    our_one.zero_grad()
    their_one.zero_grad()
    give_gradients(ours, theirs, 1)
    our_one.step()
    their_one.step()
    agree(ours, theirs)


def _as_arrays(state: dict) -> dict:
    return {n: {k: v.numpy() for k, v in kept.items() if v is not None} for n, kept in state.items()}


@pytest.mark.parametrize("name, options", NAMED)
def test_an_optimizer_prints_as_torch_prints_it(name, options):
    our_one, their_one = made(name, options, *parameters())
    assert repr(our_one) == repr(their_one)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("bfloat16", 0.02), ("complex64", 1e-6)])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_parameters_of_other_dtypes_are_trained_too(name, dtype, tolerance):
    value = np.random.default_rng(0).normal(size=(3, 2)) * (1 + 1j if dtype == "complex64" else 1)
    ours = gw.nn.Parameter(gw.tensor(value).to(getattr(gw, dtype)))
    theirs = torch.nn.Parameter(torch.tensor(value).to(getattr(torch, dtype)))
    our_one, their_one = made(name, dict(lr=0.1, weight_decay=0.1), [ours], [theirs])
    for step in range(3):
        ours.grad, theirs.grad = ours.detach() * (step + 1), theirs.detach() * (step + 1)
        our_one.step()
        their_one.step()
    wide = gw.complex128 if dtype == "complex64" else gw.float64
    found, expected = ours.detach().to(wide).numpy(), theirs.detach().to(getattr(torch, wide.name)).numpy()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_groups_have_options_of_their_own():
    ours, theirs = parameters()
    spec = lambda p: [{"params": p[:1], "lr": 0.5}, {"params": p[1:2], "momentum": 0.9}]
    our_one, their_one = gw.optim.SGD(spec(ours), lr=0.1), torch.optim.SGD(spec(theirs), lr=0.1)
    our_one.add_param_group({"params": ours[2], "weight_decay": 0.1})
    their_one.add_param_group({"params": theirs[2], "weight_decay": 0.1})
    for step in range(3):
        give_gradients(ours, theirs, step)
        our_one.step()
        their_one.step()
        agree(ours, theirs)
    assert repr(our_one) == repr(their_one)


def test_parameters_can_be_named():
    net = gw.nn.Linear(2, 1)
    found = gw.optim.SGD(net.named_parameters(), lr=0.1)
    assert found.param_groups[0]["param_names"] == ["weight", "bias"]
    assert found.param_groups[0]["params"][1] is net.bias


@pytest.mark.parametrize(
    "params, error",
    [
        (lambda p: [], ValueError),
        (lambda p: p[0], TypeError),
        (lambda p: [1.0], TypeError),
        (lambda p: [p[0] * 2], ValueError),
        (lambda p: [("a", p[0]), p[1]], ValueError),
        (lambda p: [{"params": p}, {"params": p[:1]}], ValueError),
        (lambda p: [{"params": set(p)}], TypeError),
    ],
)
def test_parameters_that_cannot_be_are_refused(params, error):
    with pytest.raises(error):
        gw.optim.SGD(params(parameters()[0]), lr=0.1)


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", dict(lr=-0.1)),
        ("SGD", dict(momentum=-1)),
        ("SGD", dict(nesterov=True)),
        ("Adam", dict(betas=(1.0, 0.9))),
        ("Adam", dict(eps=-1)),
        ("RMSprop", dict(alpha=-1)),
        ("Adagrad", dict(lr_decay=-1)),
    ],
)
def test_options_out_of_range_are_refused(name, options):
    with pytest.raises(ValueError):
        getattr(gw.optim, name)(parameters()[0], **options)


def test_a_step_that_is_differentiated_needs_parameters_that_are_no_leaves():
    ours, theirs = parameters()
    give_gradients(ours, theirs, 0)
    for lib, params in ((gw, ours), (torch, theirs)):
        with pytest.raises(RuntimeError, match="leaf"):
            lib.optim.SGD(params, lr=0.1, differentiable=True).step()


def test_a_state_of_other_groups_is_refused():
    ours, _ = parameters()
    saved = gw.optim.SGD(ours, lr=0.1).state_dict()
    with pytest.raises(ValueError, match=r"\[3\].*\[2\]"):
        gw.optim.SGD(ours[:2], lr=0.1).load_state_dict(saved)


def test_loading_copies_what_is_remembered():
    ours, theirs = parameters()
    first = gw.optim.SGD(ours, lr=0.1, momentum=0.9)
    give_gradients(ours, theirs, 0)
    first.step()
    second = gw.optim.SGD(ours, lr=0.1, momentum=0.9)
    second.load_state_dict(first.state_dict())
    second.state[ours[0]]["momentum_buffer"].fill_(0.0)
    assert first.state[ours[0]]["momentum_buffer"].abs().sum().item() > 0


def test_a_closure_is_called_with_gradients_on():
    weight = gw.nn.Parameter(gw.tensor([2.0]))
    optimizer = gw.optim.SGD([weight], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    with gw.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert weight.tolist() == [0.0]


def test_zero_grad_forgets_or_fills_with_zeros():
    ours, theirs = parameters()
    optimizer = gw.optim.SGD(ours, lr=0.1)
    give_gradients(ours, theirs, 0)
    held = ours[0].grad
    optimizer.zero_grad(set_to_none=False)
    assert ours[0].grad is held
    assert held.abs().sum().item() == 0.0
    optimizer.zero_grad()
    assert ours[0].grad is None
    assert held.shape == (3, 4)


def test_a_view_of_a_parameter_sees_the_step():
    weight = gw.nn.Parameter(gw.ones(2, 2))
    row = weight.detach()[0]
    version = weight._version
    weight.sum().backward()
    gw.optim.SGD([weight], lr=1.0).step()
    assert row.tolist() == [0.0, 0.0]
    assert weight._version > version


def test_a_step_spoils_what_an_earlier_graph_saved():
    weight = gw.nn.Parameter(gw.ones(2))
    loss = (weight * weight).sum()
    weight.grad = gw.ones(2)
    gw.optim.SGD([weight], lr=1.0).step()
    with pytest.raises(RuntimeError):
        loss.backward()
        gw.current_session().synchronize()


def test_hooks_run_around_a_step():
    seen = []
    optimizer = gw.optim.SGD(parameters()[0], lr=0.1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == ["before", "after", "before"]


def test_a_step_is_one_record_and_no_round_trip(session, round_trips):
    net = gw.nn.Sequential(*[gw.nn.Linear(4, 4) for _ in range(5)])
    optimizer = gw.optim.Adam(net.parameters())
    counts = []
    for _ in range(4):
        net(gw.ones(2, 4)).sum().backward()
        before = session.recorded
        optimizer.step()
        counts.append(session.recorded - before)
        optimizer.zero_grad()
    assert counts[1:] == [1, 1, 1]
    assert round_trips() == 0


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
@pytest.mark.parametrize("check", [False, True])
def test_gradients_are_clipped_by_norm(norm_type, max_norm, check):
    ours, theirs = parameters()
    give_gradients(ours, theirs, 0, skip=(1,))
    found = gw.nn.utils.clip_grad_norm_(ours, max_norm, norm_type, error_if_nonfinite=check)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert found.item() == pytest.approx(expected.item())
    agree([p.grad for p in ours if p.grad is not None], [p.grad for p in theirs if p.grad is not None])


def test_a_norm_that_is_not_finite_is_refused_when_asked():
    weight = gw.nn.Parameter(gw.ones(2))
    (weight * float("inf")).sum().backward()
    with pytest.raises(RuntimeError, match="finite"):
        gw.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)
    assert gw.nn.utils.clip_grad_norm_([], 1.0).item() == 0.0


def test_gradients_are_clipped_by_value():
    ours, theirs = parameters()
    give_gradients(ours, theirs, 0)
    gw.nn.utils.clip_grad_value_(ours, 0.3)
    torch.nn.utils.clip_grad_value_(theirs, 0.3)
    agree([p.grad for p in ours], [p.grad for p in theirs])


def test_parameters_become_a_vector_and_back():
    ours, theirs = parameters()
    vector = gw.nn.utils.parameters_to_vector(ours)
    np.testing.assert_array_equal(values(vector), values(torch.nn.utils.parameters_to_vector(theirs)))
    gw.nn.utils.vector_to_parameters(vector.detach() * 2, ours)
    torch.nn.utils.vector_to_parameters(torch.nn.utils.parameters_to_vector(theirs) * 2, theirs)
    agree(ours, theirs)


SCHEDULES = [
    ("LambdaLR", lambda s: (lambda epoch: 0.9**epoch,)),
    ("MultiplicativeLR", lambda s: (lambda epoch: 0.95,)),
    ("StepLR", lambda s: (3, 0.5)),
    ("MultiStepLR", lambda s: ([2, 5, 5], 0.3)),
    ("ConstantLR", lambda s: (0.25, 4)),
    ("LinearLR", lambda s: (0.2, 0.9, 6)),
    ("ExponentialLR", lambda s: (0.8,)),
    ("PolynomialLR", lambda s: (8, 2.0)),
    ("CosineAnnealingLR", lambda s: (5, 0.01)),
    ("CosineAnnealingWarmRestarts", lambda s: (3, 2, 0.01)),
    ("OneCycleLR", lambda s: (0.5, 30)),
    ("OneCycleLR", lambda s: (0.5, 30, None, None, 0.4, "linear", False, 0.85, 0.95, 10.0, 100.0, True)),
]


def run_schedule(package, make, steps: int = 25) -> list:
    """Learning rates and momenta of two groups while a schedule goes on."""
    params = [gw.nn.Parameter(gw.ones(1)), gw.nn.Parameter(gw.ones(1))]
    if package is torch.optim:
        params = [torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))]
    optimizer = package.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.7}], lr=0.1, momentum=0.9)
    schedule = make(package.lr_scheduler, optimizer)
    found = []
    for _ in range(steps):
        found.append([(g["lr"], g["momentum"]) for g in optimizer.param_groups])
        assert schedule.get_last_lr() == [g["lr"] for g in optimizer.param_groups]
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize("name, arguments", SCHEDULES, ids=[name for name, _ in SCHEDULES])
def test_schedules_agree_with_torchs(name, arguments):
    make = lambda s, o: getattr(s, name)(o, *arguments(s))
    np.testing.assert_allclose(run_schedule(gw.optim, make), run_schedule(torch.optim, make), rtol=1e-9)


def test_schedules_in_sequence_and_in_a_chain_agree_with_torchs():
    def sequence(s, o):
        parts = [s.LinearLR(o, 0.1, total_iters=4), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 6)]
        return s.SequentialLR(o, parts, [4, 10])

    def chain(s, o):
        return s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)])

    for make in (sequence, chain):
        np.testing.assert_allclose(run_schedule(gw.optim, make), run_schedule(torch.optim, make), rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [dict(), dict(mode="max"), dict(threshold_mode="abs", threshold=0.3), dict(cooldown=2, min_lr=[0.05, 0.3])],
)
def test_a_plateau_is_noticed_as_torch_does(options):
    measured = [3.0, 2.0, 1.9, 1.95, 1.99, 2.5, 2.4, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9, float("nan"), 1.0, 1.0, 5.0]
    found = []
    for package, parameter in (
        (gw.optim, gw.nn.Parameter(gw.ones(1))),
        (torch.optim, torch.nn.Parameter(torch.ones(1))),
    ):
        optimizer = package.SGD([{"params": [parameter]}, {"params": [], "lr": 0.7}], lr=0.1)
        schedule = package.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, **options)
        rates = []
        for value in measured:
            schedule.step(value)
            rates.append([g["lr"] for g in optimizer.param_groups])
        found.append(rates)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_a_saved_schedule_goes_on():
    optimizer = gw.optim.SGD([gw.nn.Parameter(gw.ones(1))], lr=1.0)
    schedule = gw.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], 0.5)
    for _ in range(3):
        schedule.step()
    resumed = gw.optim.lr_scheduler.MultiStepLR(optimizer, [9])
    resumed.load_state_dict(schedule.state_dict())
    resumed.step()
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert resumed.get_last_lr() == [0.25]


def test_a_schedule_changes_the_next_step(round_trips):
    weight = gw.nn.Parameter(gw.zeros(1))
    optimizer = gw.optim.SGD([weight], lr=1.0)
    schedule = gw.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(3):
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    assert round_trips() == 0
    assert weight.tolist() == [-1.75]
