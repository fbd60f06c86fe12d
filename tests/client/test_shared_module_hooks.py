"""Legacy and global module hooks, and forward hooks after a failure."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch as pytorch
from tests.hooked_modules import fan, module, ones, product, shown
from tests.side_by_side import Claims, name_of, raises, same

from gradwire._core.modules import global_hooks

claim = Claims()


@claim
def an_older_hook_sees_the_last_operation(torch: Any) -> Any:
    net, a, b = product(torch)
    seen = []
    net.register_backward_hook(lambda m, i, o: (seen.append((m is net, shown(i), shown(o))), (i[0] * 10, None))[1])
    result = net(a, b)
    result.sum().backward()
    return seen, result, a.grad.tolist(), b.grad.tolist()


@claim
def an_older_hook_of_a_single_operation(torch: Any) -> Any:
    net, seen = module(torch, lambda a, b: a * b), []
    net.register_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    a, b = ones(torch, 2), ones(torch, 2)
    net(a * 2, b * 3).sum().backward()
    return seen, a.grad.tolist()


@claim
def an_older_hook_warns_of_leaves_as_in_pytorch(torch: Any) -> Any:
    net = module(torch, lambda a, b: a * b)
    net.register_backward_hook(lambda m, i, o: None)
    net(ones(torch, 2), ones(torch, 2)).sum().backward()


@claim
def an_older_hook_with_several_results(torch: Any) -> Any:
    found = []
    for forward in (
        lambda a: (a * 2, a * 3), lambda a: [a * 2, a * 3], lambda a: {"n": 1, "r": a * 2}, lambda a: a.unbind(0),
        lambda a: a.detach(), lambda a: (a.detach(), a * 2),
    ):  # fmt: skip
        seen = []
        net = module(torch, forward)
        net.register_backward_hook(lambda m, i, o, seen=seen: seen.append((shown(i), shown(o))))
        a = ones(torch, 2)
        result = net(a * 1)
        for value in result.values() if isinstance(result, dict) else [result] if torch.is_tensor(result) else result:
            if torch.is_tensor(value) and value.requires_grad:
                value.sum().backward(retain_graph=True)
        found.append((seen, shown(a.grad)))
    return found


@claim
def an_older_hook_does_not_keep_its_module(torch: Any) -> Any:
    net, a, b = product(torch)
    net.register_backward_hook(lambda m, i, o: None)
    result = net(a, b)
    del net
    gc.collect()
    return raises(lambda: result.sum().backward())


@claim
def a_result_without_tensors_has_no_older_hook(torch: Any) -> Any:
    found = []
    for value in (None, (None,), 5, ()):
        net = module(torch, lambda a, value=value: value)
        net.register_backward_hook(lambda m, i, o: None)
        found.append(raises(lambda net=net: net(ones(torch, 2))))
    return found


@claim
def both_kinds_together_are_refused(torch: Any) -> Any:
    found = []
    kinds = "register_backward_hook", "register_full_backward_hook"
    for one, other in (kinds, kinds[::-1]):
        net = torch.nn.ReLU()
        handle = getattr(net, one)(print)
        found.append(raises(lambda net=net, other=other: getattr(net, other)(print)))
        handle.remove()
        found.append(raises(lambda net=net, other=other: getattr(net, other)(print)))
        net.register_full_backward_pre_hook(print)
    return found


@claim
def forward_hooks_after_a_failure(torch: Any) -> Any:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("forward")

    def explode(*args: Any) -> Any:
        raise ValueError("hook")

    found = []
    for forward, hooks in (
        (fail, ("see",)), (fail, ("explode", "see")), (lambda a: a * 2, ("see", "explode", "see")),
        (lambda a: a * 2, ("other", "explode", "see")),
    ):  # fmt: skip
        net, seen = module(torch, forward), []
        for name in hooks:
            if name == "see":
                net.register_forward_hook(
                    lambda m, i, k, o, seen=seen: seen.append(shown(o)), with_kwargs=True, always_call=True
                )
            elif name == "other":
                net.register_forward_hook(lambda m, i, o: o * 5)
            else:
                net.register_forward_hook(explode, always_call=True)
        found.append((raises(lambda net=net: net(torch.ones(1))), seen))
    return found


@claim
def a_forward_hook_registered_in_forward_runs(torch: Any) -> Any:
    seen = []
    net = torch.nn.ReLU()

    def early(m: Any, args: Any) -> None:
        m.register_forward_hook(lambda m, i, o: seen.append(shown(o)))

    net.register_forward_pre_hook(early)
    net(torch.ones(1))
    return seen


@claim
def a_module_that_was_not_initialised_cannot_be_called(torch: Any) -> Any:
    class Bare(torch.nn.Module):
        def __init__(self) -> None:
            self.times = 2

        def forward(self, x: Any) -> Any:
            return x * self.times

    return raises(lambda: Bare()(torch.ones(1)))


@claim
def hooks_of_all_modules_run_before_a_modules_own(torch: Any) -> Any:
    shared = torch.nn.modules.module
    order = []
    handles = [
        shared.register_module_forward_pre_hook(lambda m, i: order.append(("pre", type(m).__name__))),
        shared.register_module_forward_hook(lambda m, i, o: order.append(("forward", shown(o)))),
        shared.register_module_full_backward_pre_hook(lambda m, o: (order.append(("bpre", shown(o))), (o[0] * 2,))[1]),
        shared.register_module_full_backward_hook(lambda m, i, o: order.append(("back", shown(i), shown(o)))),
    ]
    net = torch.nn.Sequential(fan(torch), torch.nn.ReLU())
    net[0].register_forward_pre_hook(lambda m, i: order.append("own pre"))
    net[0].register_forward_hook(lambda m, i, o: order.append("own forward"))
    net[0].register_full_backward_pre_hook(lambda m, o: order.append("own bpre"))
    net[0].register_full_backward_hook(lambda m, i, o: order.append("own back"))
    x = ones(torch, 1, 2)
    try:
        net(x).sum().backward()
        found = raises(lambda: shared.register_module_backward_hook(print))
    finally:
        for handle in handles:
            handle.remove()
    net[1](x).sum().backward()
    return order, x.grad.tolist(), found


@claim
def older_hooks_of_all_modules(torch: Any) -> Any:
    shared = torch.nn.modules.module
    seen = []
    handle = shared.register_module_backward_hook(lambda m, i, o: seen.append((type(m).__name__, shown(i), shown(o))))
    try:
        net = torch.nn.ReLU()
        net.register_full_backward_hook(lambda m, i, o: seen.append("own"))
        net(ones(torch, 2) * 1).sum().backward()
        return seen, raises(lambda: shared.register_module_full_backward_hook(print))
    finally:
        handle.remove()


@claim
def forward_hooks_of_all_modules_replace(torch: Any) -> Any:
    shared = torch.nn.modules.module
    net, seen = module(torch, lambda a, scale=1: a * scale), []
    with (
        shared.register_module_forward_pre_hook(lambda m, i: i[0] + 1),
        shared.register_module_forward_hook(lambda m, i, k, o: (seen.append(sorted(k)), o * 10)[1], with_kwargs=True),
    ):
        found = net(torch.ones(1), scale=3).tolist()
    with shared.register_module_forward_hook(lambda m, i, o: seen.append(o), always_call=True):
        found = found, raises(lambda: net(torch.ones(1), wrong=1))
    return found, seen, net(torch.ones(1)).tolist()


@claim
def registration_hooks_of_all_modules_see_and_replace(torch: Any) -> Any:
    shared = torch.nn.modules.module
    seen = []
    other = torch.nn.Tanh()
    with (
        shared.register_module_buffer_registration_hook(
            lambda m, n, b: (seen.append(("buffer", n, shown(b))), None if b is None else b * 2)[1]
        ),
        shared.register_module_module_registration_hook(
            lambda m, n, c: (seen.append(("module", n, type(c).__name__)), other if n == "swapped" else None)[1]
        ),
        shared.register_module_parameter_registration_hook(lambda m, n, p: seen.append(("parameter", n, shown(p)))),
    ):
        net = torch.nn.Module()
        net.weight = torch.nn.Parameter(torch.ones(1))
        net.weight = None
        net.register_parameter("bias", None)
        net.register_buffer("mean", torch.ones(1))
        net.mean = torch.ones(1) * 3
        net.mean = None
        net.inner = torch.nn.ReLU()
        net.inner = None
        net.swapped = torch.nn.ReLU()
        net.add_module("added", torch.nn.ReLU())
        net.kept = torch.nn.Buffer(torch.ones(1))
        net.plain = torch.ones(1)
    net.late = torch.nn.ReLU()
    return seen, net.swapped is other, net.kept.tolist()


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kind of backward hook was registered for all modules so far."""
    monkeypatch.setattr(pytorch.nn.modules.module, "_global_is_full_backward_hook", None)
    monkeypatch.setattr(global_hooks, "_global_is_full_backward_hook", None)


@pytest.mark.usefixtures("undecided")
@pytest.mark.parametrize("run", claim.all, ids=name_of)
def test_as_in_pytorch(run: Any) -> None:
    same(run)
