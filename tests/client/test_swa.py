"""``gradwire.optim.swa_utils`` and the schedules against torch's."""

from __future__ import annotations

import warnings
from copy import deepcopy

import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire as gw

claims = Claims()


def net(lib, norm: bool = False):
    parts = [lib.nn.Linear(3, 4), *([lib.nn.BatchNorm1d(4)] if norm else []), lib.nn.Linear(4, 2)]
    made = lib.nn.Sequential(*parts)
    with lib.no_grad():
        for i, p in enumerate(made.parameters()):
            p.copy_((lib.arange(float(p.numel())).reshape(p.shape) % 5 - 2) / (i + 2))
    return made


def moved(lib, model, by: float) -> None:
    with lib.no_grad():
        for p in model.parameters():
            p.add_(by)
        for b in model.buffers():
            if b.is_floating_point():
                b.add_(by)


def averaged(lib, **options):
    model = net(lib, norm=True)
    average = lib.optim.swa_utils.AveragedModel(model, **options)
    for step in range(4):
        moved(lib, model, 0.5 * step + 0.25)
        average.update_parameters(model)
    return dict(average.state_dict()), average.module[0].weight


@claims
def averages_are_equally_weighted(lib):
    return averaged(lib)


@claims
def averages_take_buffers_too(lib):
    return averaged(lib, use_buffers=True)


@claims
def averages_can_be_exponential(lib):
    return averaged(lib, multi_avg_fn=lib.optim.swa_utils.get_ema_multi_avg_fn(0.9))


@claims
def averages_can_be_the_programs_own(lib):
    return averaged(lib, avg_fn=lambda average, new, count: average * 0.5 + new / (count + 1))


@claims
def averages_by_the_single_functions(lib):
    u = lib.optim.swa_utils
    return averaged(lib, avg_fn=u.get_ema_avg_fn(0.8)), averaged(lib, avg_fn=u.get_swa_avg_fn())


@claims
def averages_by_the_functions_for_lists(lib):
    return averaged(lib, multi_avg_fn=lib.optim.swa_utils.get_swa_multi_avg_fn())


@claims
def an_averaged_model_computes_and_is_loaded(lib):
    model = net(lib)
    first, second = (lib.optim.swa_utils.AveragedModel(deepcopy(model)) for _ in range(2))
    moved(lib, model, 1.0)
    first.update_parameters(model)
    second.load_state_dict(first.state_dict())
    moved(lib, model, 1.0)
    second.update_parameters(model)
    return second(lib.ones(2, 3)), second.n_averaged


@claims
def batch_norms_are_computed_anew(lib):
    model = net(lib, norm=True)
    model.eval()
    batches = [lib.arange(12.0).reshape(4, 3) * i for i in range(1, 4)]
    lib.optim.swa_utils.update_bn(batches, model)
    lib.optim.swa_utils.update_bn([(b, 1) for b in batches], model)
    return dict(model.state_dict()), model.training, model[1].momentum


@claims
def misuse_of_averages_is_refused(lib):
    u = lib.optim.swa_utils
    f = lambda *a: None
    made = lib.optim.SGD(net(lib).parameters(), lr=0.1)
    attempts = [
        lambda: u.AveragedModel(net(lib), avg_fn=f, multi_avg_fn=f), lambda: u.get_ema_avg_fn(2.0),
        lambda: u.SWALR(made, 0.1, anneal_strategy="other"), lambda: u.SWALR(made, 0.1, anneal_epochs=-1),
        lambda: u.SWALR(made, [0.1, 0.2]),
    ]  # fmt: skip
    return [raises(a) for a in attempts]


@pytest.mark.parametrize("claim", list(claims), ids=name_of)
def test_it_is_as_under_torch(claim):
    same(claim)


SCHEDULES = [
    ("CyclicLR", dict(base_lr=0.1, max_lr=0.9, step_size_up=3)),
    ("CyclicLR", dict(base_lr=[0.1, 0.2], max_lr=0.9, step_size_up=2, step_size_down=4, mode="triangular2")),
    ("CyclicLR", dict(base_lr=0.1, max_lr=0.9, step_size_up=3, mode="exp_range", gamma=0.9)),
    ("CyclicLR", dict(base_lr=0.1, max_lr=0.9, step_size_up=3, scale_fn=lambda x: 0.5**x, scale_mode="iterations")),
    ("CyclicLR", dict(base_lr=0.1, max_lr=0.9, step_size_up=2, cycle_momentum=False)),
    ("SWALR", dict(swa_lr=0.05)),
    ("SWALR", dict(swa_lr=[0.05, 0.9], anneal_epochs=3, anneal_strategy="linear")),
    ("SWALR", dict(swa_lr=0.05, anneal_epochs=0)),
    ("StepLR", dict(step_size=2)),
    ("MultiStepLR", dict(milestones=[2, 4, 4])),
    ("ExponentialLR", dict(gamma=0.7)),
    ("ConstantLR", dict(total_iters=3)),
    ("LinearLR", dict(total_iters=4)),
    ("PolynomialLR", dict(total_iters=4, power=2.0)),
    ("CosineAnnealingLR", dict(T_max=4, eta_min=0.01)),
    ("CosineAnnealingWarmRestarts", dict(T_0=2, T_mult=2)),
    ("LambdaLR", dict(lr_lambda=lambda e: 0.9**e)),
    ("MultiplicativeLR", dict(lr_lambda=lambda e: 0.9)),
    ("OneCycleLR", dict(max_lr=1.0, total_steps=9)),
    ("OneCycleLR", dict(max_lr=[1.0, 2.0], total_steps=9, anneal_strategy="linear", three_phase=True)),
]
NAMED = [pytest.param(n, o, id=f"{n}({', '.join(o)})-{i}") for i, (n, o) in enumerate(SCHEDULES)]


def course(lib, name: str, options: dict, steps: int = 8, tensor: bool = False, epochs=None):
    params = [lib.nn.Parameter(lib.ones(1)), lib.nn.Parameter(lib.ones(1))]
    lr = lambda x: lib.tensor(x, dtype=lib.float64) if tensor else x
    optimizer = lib.optim.SGD([{"params": params[:1], "lr": lr(0.4)}, {"params": params[1:]}], lr=lr(0.3), momentum=0.5)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = getattr(lib.optim.swa_utils if name == "SWALR" else lib.optim.lr_scheduler, name)
        schedule = make(optimizer, **options)
        for step in range(steps):
            found.append([(float(g["lr"]), g["momentum"]) for g in optimizer.param_groups])
            optimizer.step()
            schedule.step(*([] if epochs is None else [epochs[step]]))
            if step == 4 and epochs is None:
                saved = schedule.state_dict()
                again = make(optimizer, **options)
                again.load_state_dict(saved)
                for group, rate in zip(optimizer.param_groups, saved["_last_lr"], strict=True):
                    group["lr"] = lr(float(rate))
                schedule = again
    return found, sorted(k for k in schedule.state_dict() if not k.startswith("_") or k == "_step_count")


@pytest.mark.parametrize("name, options", NAMED)
def test_a_schedule_follows_torchs(name, options):
    def rates(lib):
        return course(lib, name, options)[0]

    same(rates)


@pytest.mark.parametrize("name, options", [p for p in NAMED if p.values[0] not in ("OneCycleLR", "CyclicLR")])
def test_a_schedule_of_a_tensor_follows_torchs(name, options):
    def rates(lib):
        return course(lib, name, options, steps=4, tensor=True)[0]

    same(rates)


@pytest.mark.parametrize(
    "name, options",
    [p for p in NAMED if p.values[0] not in ("OneCycleLR", "CyclicLR", "SWALR", "MultiplicativeLR", "LambdaLR")],
)
def test_a_schedule_goes_to_an_epoch(name, options):
    def rates(lib):
        return course(lib, name, options, steps=6, epochs=[1, 2, 5, 3, 7, 8])[0]

    same(rates)


def test_torchs_list_of_schedules_is_complete():
    assert set(torch.optim.lr_scheduler.__all__) <= set(dir(gw.optim.lr_scheduler))
    assert set(torch.optim.swa_utils.__all__) <= set(dir(gw.optim.swa_utils))


def test_a_schedule_before_the_first_step_warns():
    def early(lib):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1)
        schedule = lib.optim.lr_scheduler.StepLR(optimizer, 2)
        schedule.step()
        return schedule.get_last_lr()

    same(early)


def test_a_tensor_as_rate_is_read_once(round_trips):
    lr = gw.tensor(0.5)
    w = gw.nn.Parameter(gw.ones(2))
    optimizer = gw.optim.SGD([w], lr=lr)
    schedule = gw.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(4):
        w.grad = gw.ones(2)
        optimizer.step()
        schedule.step()
    assert round_trips() == 1
    assert lr.item() == 0.5**5


@pytest.mark.parametrize("name, options", NAMED)
def test_a_schedule_goes_on_from_torchs_state_and_torchs_from_ours(name, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {}
        for lib in (torch, gw):
            params = [[lib.nn.Parameter(lib.ones(1))] for _ in range(2)]
            optimizer = lib.optim.SGD([{"params": p} for p in params], lr=0.3, momentum=0.5)
            make = getattr(lib.optim.swa_utils if name == "SWALR" else lib.optim.lr_scheduler, name)
            made[lib] = optimizer, make(optimizer, **options)
            for _ in range(3):
                optimizer.step()
                made[lib][1].step()
        states = {lib: schedule.state_dict() for lib, (_, schedule) in made.items()}
        made[torch][1].load_state_dict(dict(states[gw]))
        made[gw][1].load_state_dict(states[torch])
        for _ in range(4):
            for optimizer, schedule in made.values():
                optimizer.step()
                schedule.step()
            rates = [[g["lr"] for g in optimizer.param_groups] for optimizer, _ in made.values()]
            assert rates[0] == pytest.approx(rates[1], rel=1e-12)


def test_a_function_that_is_an_object_is_saved():
    class Factor:
        def __init__(self) -> None:
            self.by = 0.5

        def __call__(self, epoch: int) -> float:
            return self.by**epoch

    def course(lib):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=1.0)
        first, second = Factor(), Factor()
        schedule = lib.optim.lr_scheduler.LambdaLR(optimizer, first)
        first.by = 0.25
        other = lib.optim.lr_scheduler.LambdaLR(optimizer, second)
        other.load_state_dict(schedule.state_dict())
        return second.by, schedule.state_dict()["lr_lambdas"]

    same(course)
