"""Optimizer hooks, custom optimizers, copies, and round trips of LBFGS."""

from __future__ import annotations

import warnings
from copy import deepcopy
from importlib import import_module

import pytest
from tests.side_by_side import Claims, name_of, raises, same

import gradwire as gw

claims = Claims()


def start(lib, name: str = "SGD", **options):
    w = lib.nn.Parameter(lib.arange(3.0))
    w.grad = lib.ones(3)
    return w, getattr(lib.optim, name)([w], **({"lr": 0.5} | options))


@claims
def step_hooks_run_in_order(lib):
    w, made = start(lib)
    seen = []
    made.register_step_pre_hook(
        lambda o, args, kwargs: seen.append(("pre", o is made, args[0] is o, len(args), kwargs))
    )
    made.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", w.detach().tolist())))
    with made.register_step_pre_hook(lambda o, args, kwargs: seen.append("second")):
        made.step()
    made.step()
    return seen


@claims
def a_step_hook_may_change_the_arguments(lib):
    _, made = start(lib)
    made.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7.0), {}))
    return made.step()


@claims
def a_step_hook_must_return_arguments(lib):
    _, made = start(lib)
    made.register_step_pre_hook(lambda o, args, kwargs: 3)
    return raises(made.step)


@claims
def hooks_of_all_optimizers_run(lib):
    seen = []
    module = import_module(f"{lib.__name__}.optim.optimizer")
    handles = [
        module.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("all pre")),
        module.register_optimizer_step_post_hook(lambda o, a, k: seen.append("all post")),
    ]
    _, made = start(lib)
    made.register_step_pre_hook(lambda o, a, k: seen.append("own pre"))
    made.register_step_post_hook(lambda o, a, k: seen.append("own post"))
    made.step()
    for handle in handles:
        handle.remove()
    made.step()
    return seen


@claims
def state_dict_hooks_run(lib):
    _, made = start(lib, momentum=0.9)
    seen = []
    made.register_state_dict_pre_hook(lambda o: seen.append("before"))
    made.register_state_dict_post_hook(lambda o, found: {**found, "more": 1})
    made.register_state_dict_post_hook(lambda o, found: seen.append(sorted(found)), prepend=True)
    return made.state_dict()["more"], seen


@claims
def loading_hooks_run(lib):
    _, made = start(lib)
    saved = made.state_dict()
    saved["param_groups"][0]["lr"] = 0.25
    seen = []

    def twice(optimizer, given):
        given["param_groups"][0]["weight_decay"] = 2.0
        return given

    made.register_load_state_dict_pre_hook(twice)
    made.register_load_state_dict_post_hook(lambda o: seen.append(o.param_groups[0]["lr"]))
    made.load_state_dict(saved)
    return made.param_groups[0]["weight_decay"], seen


@claims
def an_optimizer_of_the_programs_own_has_hooks(lib):
    class Halving(lib.optim.Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with lib.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            self.state[p]["count"] = self.state[p].get("count", 0) + 1
                            p.add_(p.grad, alpha=-group["lr"])
            return None if closure is None else closure()

    class Quartering(Halving):
        def step(self, closure=None):
            self.param_groups[0]["lr"] = 0.25
            return super().step(closure)

    w = lib.nn.Parameter(lib.ones(2))
    w.grad = lib.ones(2)
    made, seen = Quartering([w]), []
    made.register_step_post_hook(lambda o, a, k: seen.append(o.state[w]["count"]))
    schedule = lib.optim.lr_scheduler.ExponentialLR(made, 0.5)
    result = made.step(lambda: 3)
    schedule.step()
    made.zero_grad()
    return result, seen, w.detach(), w.grad, made.state_dict()["state"], repr(made)


@claims
def an_optimizer_is_copied(lib):
    w, made = start(lib, "Adam")
    made.step()
    copied = deepcopy(made)
    (other,) = copied.param_groups[0]["params"]
    other.grad = lib.ones(3)
    copied.step()
    state = copied.state_dict()["state"][0]
    return w.detach(), other.detach(), other is w, state["exp_avg"], float(state["step"])


@claims
def gradients_are_cleared_or_zeroed(lib):
    w, made = start(lib)
    made.zero_grad(set_to_none=False)
    zeros = w.grad.clone()
    made.zero_grad()
    return zeros, w.grad


@claims
def a_parameter_twice_warns_and_moves_twice(lib):
    w = lib.nn.Parameter(lib.ones(2))
    w.grad = lib.ones(2)
    lib.optim.SGD([w, w], lr=0.25).step()
    return w.detach()


@claims
def closures_are_called_with_gradients_on(lib):
    found = []
    for name in ("SGD", "Adam", "Rprop", "ASGD"):
        w, made = start(lib, name)

        def closure(w=w, made=made):
            made.zero_grad()
            loss = (w**2).sum()
            loss.backward()
            return loss

        with lib.no_grad():
            found.append((float(made.step(closure)), w.detach()))
    return found


@claims
def lbfgs_needs_one_group_and_a_closure(lib):
    a, b = (lib.nn.Parameter(lib.ones(2)) for _ in range(2))
    return (
        raises(lambda: lib.optim.LBFGS([{"params": [a]}, {"params": [b]}])),
        raises(lambda: lib.optim.LBFGS([a]).step()),
        raises(lambda: lib.optim.LBFGS([a], line_search_fn="other").step(lambda: _square(lib, a))),
    )


def _square(lib, a):
    loss = (a**2).sum()
    loss.backward()
    return loss


@pytest.mark.parametrize("claim", list(claims), ids=name_of)
def test_it_is_as_under_torch(claim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(claim)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_lbfgs_minimises_rosenbrocks_valley_as_torch_does(search, dtype):
    def course(lib):
        w = lib.nn.Parameter(lib.tensor([-1.2, 1.0, 0.8], dtype=getattr(lib, dtype)))
        made = lib.optim.LBFGS(
            [w], lr=0.02 if search is None else 1.0, max_iter=8, line_search_fn=search, history_size=3
        )
        calls = []

        def closure():
            made.zero_grad()
            loss = (100 * ((w[1:] - w[:-1] ** 2).abs() ** 2) + (1 - w[:-1]).abs() ** 2).sum()
            loss.backward()
            calls.append(1)
            return loss

        losses = [made.step(closure).item() for _ in range(4)]
        return losses, len(calls), w.detach()

    same(course)


def test_lbfgs_waits_once_for_each_call_of_the_closure(round_trips):
    w = gw.nn.Parameter(gw.tensor([-1.2, 1.0]))
    made = gw.optim.LBFGS([w], lr=0.01, max_iter=6)
    calls = []

    def closure():
        made.zero_grad()
        loss = (100 * (w[1] - w[0] ** 2) ** 2 + (1 - w[0]) ** 2).sum()
        loss.backward()
        calls.append(1)
        return loss

    for _ in range(3):
        made.step(closure)
    assert round_trips() == len(calls)


def test_no_other_optimizer_waits(round_trips):
    for name in ("Adadelta", "Adafactor", "Adamax", "ASGD", "NAdam", "RAdam", "Rprop", "Muon"):
        w = gw.nn.Parameter(gw.ones(3, 2))
        made = getattr(gw.optim, name)([w])
        for _ in range(3):
            w.grad = gw.ones(3, 2)
            made.step()
    assert round_trips() == 0
