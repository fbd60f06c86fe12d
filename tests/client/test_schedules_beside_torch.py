"""Learning rate schedules step by step under torch and gradwire: new, resumed, modified, saved and loaded."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from tests.side_by_side import built_in

import gradwire

pytestmark = pytest.mark.usefixtures("session")

STEPS = 22
RESUMED = {"initial_lr": 1.0, "max_lr": 2.0, "min_lr": 0.01, "max_momentum": 0.95, "base_momentum": 0.85}


def optimizer(lib: Any, kind: str, resumed: bool) -> Any:
    """An optimizer of two groups."""
    rates: list[Any] = [0.5, 0.2]
    if kind == "tensor":
        rates = [lib.tensor(rate) for rate in rates]
    groups = [{"params": [lib.nn.Parameter(lib.zeros(1))], "lr": rate} for rate in rates]
    if resumed:
        for i, group in enumerate(groups):
            group.update({name: value / (i + 1) for name, value in RESUMED.items()})
    if kind == "adam":
        return lib.optim.Adam(groups, lr=0.3)
    return lib.optim.SGD(groups, lr=0.3, momentum=0.9)


def of(name: str, *args: Any, **named: Any) -> tuple[str, Callable[[Any, Any, int], Any]]:
    def make(lib: Any, optimizer: Any, last_epoch: int) -> Any:
        return getattr(lib.optim.lr_scheduler, name)(optimizer, *args, last_epoch=last_epoch, **named)

    given = [*map(str, args), *(f"{key}={value}" for key, value in named.items())]
    return f"{name}({', '.join('f' if ' at 0x' in word else word for word in given)})", make


SCHEDULES = dict([
    of("LambdaLR", lambda e: 0.9**e), of("MultiplicativeLR", [lambda e: 0.9, lambda e: 0.5 + e / 100]),
    of("StepLR", 1), of("StepLR", 6, gamma=0.5), of("MultiStepLR", [2, 6, 6, 9], gamma=0.5), of("ExponentialLR", 0.9),
    of("ConstantLR", factor=0.5, total_iters=6), of("LinearLR"), of("PolynomialLR"),
    of("LinearLR", start_factor=0.2, end_factor=0.8, total_iters=9), of("PolynomialLR", total_iters=9, power=2.0),
    of("CosineAnnealingLR", T_max=5), of("CosineAnnealingLR", T_max=6, eta_min=0.01), of("CosineAnnealingLR", T_max=1),
    of("CosineAnnealingWarmRestarts", T_0=3, T_mult=2, eta_min=0.01), of("CosineAnnealingWarmRestarts", T_0=4),
    of("OneCycleLR", max_lr=[1.0, 2.0], total_steps=20),
    of("OneCycleLR", max_lr=1.0, total_steps=30, anneal_strategy="linear", three_phase=True),
    of("OneCycleLR", max_lr=1.0, epochs=4, steps_per_epoch=9, cycle_momentum=False, pct_start=0.1),
    *[of("CyclicLR", 0.1, [1.0, 2.0], step_size_up=3, step_size_down=4, mode=mode, gamma=0.97, scale_mode=scale)
      for mode in ("triangular", "triangular2", "exp_range") for scale in ("cycle", "iterations")],
    of("CyclicLR", 0.1, 1.0, step_size_up=4, scale_fn=lambda x: 0.9**x, scale_mode="iterations"),
])  # fmt: skip


def seen(optimizer: Any, schedule: Any) -> list[float]:
    """All that a step of a schedule changes."""
    found = [float(group["lr"]) for group in optimizer.param_groups]
    found += [float(group.get("momentum", group.get("betas", (0,))[0])) for group in optimizer.param_groups]
    found += [float(rate) for rate in schedule.get_last_lr()]
    return [*found, float(getattr(schedule, "last_epoch", 0)), float(getattr(schedule, "_step_count", 0))]


def course(lib: Any, make: Callable[[Any, Any, int], Any], last_epoch: int, what: str, kind: str) -> list[Any]:
    """What a schedule does in some steps; at its end the class of an exception, if there was one."""
    found: list[Any] = []
    try:
        tuned = optimizer(lib, kind, last_epoch >= 0)
        schedule = make(lib, tuned, last_epoch)
        found.append(seen(tuned, schedule))
        for i in range(STEPS):
            epoch = {"jumps": 11, "jumps within": 3.7}.get(what) if i == 6 else None
            if i == 6 and what == "is disturbed":
                tuned.param_groups[0]["lr"] = 0.77
            if i == 6 and what == "is saved":
                states = schedule.state_dict(), tuned.state_dict()
                tuned = optimizer(lib, kind, last_epoch >= 0)
                schedule = make(lib, tuned, last_epoch)
                schedule.load_state_dict(states[0])
                tuned.load_state_dict(states[1])
            schedule.step() if epoch is None else schedule.step(epoch)
            found.append(seen(tuned, schedule))
    except Exception as error:
        found.append(built_in(error))
    return found


def check(make: Callable[[Any, Any, int], Any], last_epoch: int, what: str, kind: str = "plain") -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (course(lib, make, last_epoch, what, kind) for lib in (torch, gradwire))
    assert len(ours) == len(theirs)
    for step, (expected, found) in enumerate(zip(theirs, ours, strict=True)):
        where = f"step {step}: torch {expected}, gradwire {found}"
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected, where
        else:
            assert all(math.isclose(a, b, rel_tol=2e-5, abs_tol=1e-7) for a, b in zip(expected, found)), where


@pytest.mark.parametrize("what", ["goes on", "is disturbed", "jumps", "jumps within", "is saved"])
@pytest.mark.parametrize("last_epoch", [-1, 0, 1, 5, 8])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
def test_a_schedule_goes_as_torchs(schedule, last_epoch, what):
    check(schedule, last_epoch, what)


@pytest.mark.parametrize("kind", ["tensor", "adam"])
@pytest.mark.parametrize("last_epoch", [-1, 5])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
def test_a_schedule_goes_as_torchs_on_rates_that_are_tensors_and_on_betas(schedule, last_epoch, kind):
    check(schedule, last_epoch, "is saved", kind)


def sequence(parts: list[str], milestones: list[int], nested: str = "") -> Callable[[Any, Any, int], Any]:
    def make(lib: Any, optimizer: Any, last_epoch: int) -> Any:
        library = lib.optim.lr_scheduler
        made = [SCHEDULES[name](lib, optimizer, last_epoch) for name in parts]
        if nested == "chained":
            made = [library.ChainedScheduler([made[0], *made[2:]], optimizer), made[1]]
        if nested == "nested":
            made = [library.SequentialLR(optimizer, made[:2], [3]), *made[2:]]
        if nested == "all chained":
            return library.ChainedScheduler(made)
        return library.SequentialLR(optimizer, made, milestones, last_epoch=last_epoch)

    return make


NAMES = list(SCHEDULES)
WARM_UP = next(n for n in NAMES if n.startswith("LinearLR"))
COMPOSED = {
    f"{nested}: {', '.join(parts)} at {milestones}": sequence(parts, milestones, nested)
    for nested, milestones, parts in [
        *[("", [at], [WARM_UP, name]) for name in NAMES for at in (0, 1, 5)],
        *[("", [3, 7], [WARM_UP, NAMES[5], name]) for name in NAMES[:16]],
        *[("chained", [4], [WARM_UP, NAMES[5], name]) for name in NAMES[:16]],
        *[("nested", [6], [WARM_UP, NAMES[5], name]) for name in NAMES[:16]],
        *[("all chained", [], [WARM_UP, name]) for name in NAMES],
    ]
}


@pytest.mark.parametrize("what", ["goes on", "is saved"])
@pytest.mark.parametrize("make", COMPOSED.values(), ids=list(COMPOSED))
def test_schedules_of_schedules_go_as_torchs(make, what):
    check(make, -1, what)
    if what == "goes on":
        check(make, 5, what)


METRICS = {
    "falling": [1.0, 0.98, 0.96, 0.94, 0.92], "rising": [0.92, 0.94, 0.96, 0.98, 1.0], "flat": [1.0] * 8,
    "negative": [-1.0, -0.98, -0.96, -1.5, -1.4, -1.3], "through zero": [0.2, 0.1, 0.0, -0.1, -0.2, -0.1, 0.0, 0.1],
    "lost": [1.0, math.nan, 0.5, math.nan, 0.6, 0.7], "unbounded": [math.inf, 1.0, -math.inf, 2.0, math.inf, 3.0],
    "tiny steps": [1.0, 0.99995, 0.9998, 0.9998, 0.99975, 1.0001, 1.00025],
}  # fmt: skip


@pytest.mark.parametrize("saved", [False, True], ids=["through", "saved"])
@pytest.mark.parametrize("options", [
    {}, {"patience": 0}, {"threshold": 0.5}, {"threshold": 0.0}, {"cooldown": 2}, {"min_lr": [0.2, 0.0]},
    {"threshold": 1.0}, {"eps": 0.15},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("metrics", METRICS.values(), ids=list(METRICS))
def test_a_plateau_is_where_torch_sees_one(metrics, mode, threshold_mode, options, saved):
    named = {"factor": 0.5, "patience": 1, "mode": mode, "threshold_mode": threshold_mode} | options
    courses = []
    for lib in (torch, gradwire):
        make = partial(lib.optim.lr_scheduler.ReduceLROnPlateau, **named)
        tuned = optimizer(lib, "tensor" if saved else "plain", False)
        schedule, found = make(tuned), []
        for i, metric in enumerate(metrics * 2):
            if saved and i == 4:
                state = schedule.state_dict()
                schedule = make(tuned)
                schedule.load_state_dict(state)
            schedule.step(metric)
            rates = [round(float(group["lr"]), 6) for group in tuned.param_groups]
            counts = [schedule.best, schedule.num_bad_epochs, schedule.cooldown_counter, schedule.last_epoch]
            found.append(
                [rates, [repr(count) for count in counts], [round(float(r), 6) for r in schedule.get_last_lr()]]
            )
        courses.append(found)
    assert courses[1] == courses[0]


def test_schedules_that_do_not_fit_together_are_refused_with_torchs_classes():
    for lib in (torch, gradwire):
        library, one, other = lib.optim.lr_scheduler, optimizer(lib, "plain", False), optimizer(lib, "plain", False)
        step, plateau = library.StepLR(one, 2), library.ReduceLROnPlateau(one)
        for parts, kind in (
            ([], ValueError), ([step, library.StepLR(other, 2)], ValueError), ([step, plateau], ValueError),
            ([step, 3], TypeError),
        ):  # fmt: skip
            with pytest.raises(kind):
                library.SequentialLR(one, parts, [2])
            with pytest.raises(kind):
                library.ChainedScheduler(parts)
        with pytest.raises(TypeError):
            library.SequentialLR(one, [step, step], [2]).step(3)
        one.add_param_group({"params": [lib.zeros(1, requires_grad=True)]})
        for _ in range(12):
            plateau.step(1.0)
        assert len(plateau.min_lrs) == 3


@pytest.mark.parametrize("name", ["StepLR", "ReduceLROnPlateau"])
def test_an_epoch_given_to_step_is_warned_about(name):
    for lib in (torch, gradwire):
        tuned = optimizer(lib, "plain", False)
        schedule = lib.optim.lr_scheduler.StepLR(tuned, 2) if name == "StepLR" else (
            lib.optim.lr_scheduler.ReduceLROnPlateau(tuned)
        )  # fmt: skip
        with pytest.warns(UserWarning, match="epoch"):
            schedule.step(*([0.5] if name != "StepLR" else []), epoch=1)


def test_an_optimizer_whose_step_is_replaced_is_warned_about():
    for lib in (torch, gradwire):
        tuned = optimizer(lib, "plain", False)
        schedule = lib.optim.lr_scheduler.StepLR(tuned, 2)
        step = tuned.step
        tuned.step = lambda step=step: step()
        tuned.step()
        with pytest.warns(UserWarning, match="optimizer.step"):
            schedule.step()


@pytest.mark.parametrize("lib", [torch, gradwire], ids=lambda lib: lib.__name__)
@pytest.mark.parametrize("schedule", ["ExponentialLR", "ReduceLROnPlateau"])
def test_a_step_to_an_epoch_warns_with_the_text_that_programs_can_import(lib, schedule):
    kinds = lib.optim.lr_scheduler
    tuned = lib.optim.SGD([lib.ones(2, requires_grad=True)], lr=0.1)
    made, start = (
        (kinds.ExponentialLR(tuned, 0.5), ())
        if schedule == "ExponentialLR"
        else (kinds.ReduceLROnPlateau(tuned), (1.0,))
    )
    tuned.step()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.step(*start, epoch=3)
    assert [str(w.message) for w in caught] == [kinds.EPOCH_DEPRECATION_WARNING]
