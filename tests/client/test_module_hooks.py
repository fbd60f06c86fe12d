"""Hooks of modules on their backward, and hooks that all modules share."""

from __future__ import annotations

import copy
import gc
from collections import namedtuple
from typing import Any

import pytest
import torch as pytorch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire
from gradwire.nn import global_hooks

claim = Claims()

Pair = namedtuple("Pair", "first second")


def shown(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def module(torch: Any, forward: Any) -> Any:
    """A module whose forward is a function."""

    class Made(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return forward(*args, **kwargs)

    return Made()


def ones(torch: Any, *shape: int) -> Any:
    return torch.ones(*shape, requires_grad=True)


def product(torch: Any) -> tuple[Any, Any, Any]:
    return module(torch, lambda a, b: a * b * 2), ones(torch, 2), torch.full((2,), 3.0, requires_grad=True)


def failure(net: Any, *args: Any) -> str | None:
    """What a module's forward and backward raise."""
    return raises(lambda: net(*args).sum().backward())


def fan(torch: Any) -> Any:
    """A linear layer with known weights."""
    made = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return made


@claim
def a_full_hook_sees_the_gradients_of_inputs_and_results(torch: Any) -> Any:
    net, a, b = product(torch)
    seen = []
    net.register_full_backward_hook(lambda m, i, o: seen.append((m is net, shown(i), shown(o))))
    net(a, b).sum().backward()
    return seen, a.grad.tolist(), b.grad.tolist()


@claim
def a_full_hook_replaces_the_gradients_of_inputs(torch: Any) -> Any:
    net, a, b = product(torch)
    net.register_full_backward_hook(lambda m, i, o: (i[0] * 10, None))
    net.register_full_backward_hook(lambda m, i, o: (i[0] + 1, i[1]))
    net(a, b).sum().backward()
    return a.grad.tolist(), b.grad


@claim
def a_pre_hook_replaces_the_gradients_of_results(torch: Any) -> Any:
    net, a, b = product(torch)
    seen = []
    net.register_full_backward_pre_hook(lambda m, o: (o[0] * 10,))
    net.register_full_backward_pre_hook(lambda m, o: seen.append(shown(o)))
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    net(a, b).sum().backward()
    return seen, a.grad.tolist(), b.grad.tolist()


@claim
def results_and_arguments_pass_a_node_of_their_own(torch: Any) -> Any:
    inner = []
    net = module(torch, lambda a, b, c: (inner.append((a, b, c)), (a * b, a + 1, b))[1])
    net.register_full_backward_hook(lambda m, i, o: None)
    results = net(ones(torch, 2) * 1, ones(torch, 2), torch.ones(2))
    node = results[0].grad_fn
    return results, inner, [type(r).__name__ == "Tensor" for r in results], [
        (n.name(), i) for n, i in node.next_functions
    ], [r.output_nr for r in results]  # fmt: skip


@claim
def without_gradients_nothing_is_hooked(torch: Any) -> Any:
    seen = []
    net, a, b = product(torch)
    net.register_full_backward_hook(lambda m, i, o: seen.append(1))
    with torch.no_grad():
        first = net(a, b)
    return first, net(a.detach(), b.detach()), seen


@claim
def arguments_without_gradient_get_zeros_and_others_none(torch: Any) -> Any:
    seen = []
    net = module(torch, lambda a, text, b, n, scale=None: (a * b * n * scale, "text", b))
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    net.register_full_backward_hook(lambda m, i, o: (i[0] * 2, "ignored", torch.ones(2), 7))
    a, k = ones(torch, 2), ones(torch, 2)
    net(a, "x", torch.ones(2), 3, scale=k)[0].sum().backward()
    return seen, a.grad.tolist(), k.grad.tolist()


@claim
def a_hook_sees_all_inputs_even_where_one_is_asked_for(torch: Any) -> Any:
    net, a, b = product(torch)
    seen = []
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    found = torch.autograd.grad(net(a, b).sum(), b)
    net(a, b).sum().backward(inputs=[a])
    return seen, shown(found), shown([a.grad, b.grad])


@claim
def without_gradients_for_inputs_the_hook_follows_the_results(torch: Any) -> Any:
    net, seen = fan(torch), []
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    net.register_full_backward_pre_hook(lambda m, o: (o[0] * 2,))
    net(torch.ones(1, 2)).sum().backward()
    net.register_full_backward_hook(lambda m, i, o: (None,))
    net(torch.ones(1, 2)).sum().backward()
    net.register_full_backward_hook(lambda m, i, o: (torch.ones(1, 2),))
    return seen, net.weight.grad.tolist(), raises(lambda: net(torch.ones(1, 2)).sum().backward())


@claim
def the_hook_of_a_module_without_arguments(torch: Any) -> Any:
    weight, seen = ones(torch, 2), []
    net = module(torch, lambda: weight * 2)
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    net().sum().backward()
    return seen, weight.grad.tolist()


@claim
def results_that_nobody_used_have_no_gradient(torch: Any) -> Any:
    seen = []
    net = module(torch, lambda a: (a * 2, a * 3))
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    a = ones(torch, 2)
    net(a)[1].sum().backward()
    return seen, a.grad.tolist()


@claim
def results_that_need_no_gradient(torch: Any) -> Any:
    seen = []
    net = module(torch, lambda a: (a.detach(), a * 3, "text", a.argmax()))
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    a = ones(torch, 2)
    results = net(a)
    results[1].sum().backward()
    return seen, a.grad.tolist(), results


@claim
def hooks_run_in_order_of_registration_or_before_others(torch: Any) -> Any:
    net, order = fan(torch), []
    net.register_full_backward_hook(lambda m, i, o: order.append("b1"))
    net.register_full_backward_hook(lambda m, i, o: order.append("b2"))
    net.register_full_backward_hook(lambda m, i, o: order.append("b0"), prepend=True)
    net.register_full_backward_pre_hook(lambda m, o: order.append("p1"))
    net.register_full_backward_pre_hook(lambda m, o: order.append("p0"), prepend=True)
    net.register_forward_hook(lambda m, i, o: order.append(("f", o.grad_fn.name())))
    net.register_forward_pre_hook(lambda m, i: order.append(("fp", i[0].is_leaf)))
    net(ones(torch, 1, 2)).sum().backward()
    return order


@claim
def forward_hooks_see_the_hooked_arguments(torch: Any) -> Any:
    net, seen = fan(torch), []
    net.register_full_backward_hook(lambda m, i, o: None)
    net.register_forward_hook(lambda m, i, o: (seen.append(i[0]), o * 2)[1])
    return net(ones(torch, 1, 2)), seen


@claim
def nested_modules(torch: Any) -> Any:
    order = []
    net = torch.nn.Sequential(fan(torch), torch.nn.ReLU(), fan(torch))
    for name, part in net.named_modules():
        part.register_full_backward_hook(lambda m, i, o, name=name: order.append((name, shown(i), shown(o))))
        part.register_full_backward_pre_hook(lambda m, o, name=name: order.append((name, shown(o))))
    x = ones(torch, 1, 2)
    net(x).sum().backward()
    return order, x.grad.tolist(), [p.grad.tolist() for p in net.parameters()]


@claim
def a_module_called_twice(torch: Any) -> Any:
    net, seen = fan(torch), []
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    x = ones(torch, 1, 2)
    net(net(x) * 2).sum().backward()
    return seen, x.grad.tolist(), net.weight.grad.tolist()


@claim
def backward_twice_through_one_call(torch: Any) -> Any:
    net, a, b = product(torch)
    seen = []
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    result = net(a, b).sum()
    result.backward(retain_graph=True)
    result.backward()
    return seen, a.grad.tolist()


@claim
def a_hook_is_that_of_the_time_of_the_call(torch: Any) -> Any:
    net, a, b = product(torch)
    seen = []
    first = net.register_full_backward_hook(lambda m, i, o: seen.append(1))
    before = net(a, b)
    net.register_full_backward_hook(lambda m, i, o: seen.append(2))
    first.remove()
    after = net(a, b)
    before.sum().backward()
    after.sum().backward()
    with net.register_full_backward_pre_hook(lambda m, o: seen.append(3)) as handle:
        handle.remove()
    net(a, b).sum().backward()
    return seen


@claim
def recorded_backward_goes_through_hooks(torch: Any) -> Any:
    net = module(torch, lambda a: a * a * a)
    seen = []
    net.register_full_backward_hook(lambda m, i, o: (seen.append((shown(i), i[0].requires_grad)), (i[0] * 2,))[1])
    a = torch.tensor([2.0], requires_grad=True)
    (g,) = torch.autograd.grad(net(a).sum(), a, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), a)
    return seen, g.tolist(), h.tolist()


@claim
def a_derivative_that_does_not_pass_the_results_calls_no_hook(torch: Any) -> Any:
    net, seen = module(torch, lambda a: a * a), []
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    a = torch.tensor([2.0], requires_grad=True)
    b = torch.tensor([5.0], requires_grad=True)
    (g,) = torch.autograd.grad((net(a) * b).sum(), b, create_graph=True)
    (g,) = torch.autograd.grad((net(a) * b).sum(), a, create_graph=True)
    g.sum().backward()
    return seen, a.grad.tolist()


@claim
def what_hooks_return_is_checked(torch: Any) -> Any:
    found = []
    one, long = torch.ones(2), torch.ones(3)
    for value in ((), (None,) * 3, 5, one, long, [None, None], "ab", (5, None), (long, None), (one,), [one]):
        for register in ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook"):
            net, a, b = product(torch)
            getattr(net, register)(lambda *args, value=value: value)
            found.append((type(value).__name__, register, failure(net, a, b), shown(a.grad)))
    return found


@claim
def a_hook_that_raises_leaves_backward(torch: Any) -> Any:
    def explode(*args: Any) -> None:
        raise KeyError("mine")

    found = []
    for register in ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook"):
        net, a, b = product(torch)
        getattr(net, register)(explode)
        found.append(failure(net, a, b))
    return found


@claim
def results_and_arguments_cannot_be_changed_in_place(torch: Any) -> Any:
    net, a, b = product(torch)
    net.register_full_backward_hook(lambda m, i, o: None)
    inside = torch.nn.ReLU(inplace=True)
    inside.register_full_backward_hook(lambda m, i, o: None)
    two = module(torch, lambda a, b: (a * 1, b * 1))
    two.register_full_backward_hook(lambda m, i, o: None)
    plain = torch.ones(2)

    def spoil(t: Any) -> Any:
        t.add_(1)
        return t.sum().backward()

    return (
        raises(lambda: spoil(net(a, b))), raises(lambda: inside(a * 1)), raises(lambda: spoil(two(a, b)[1])),
        raises(lambda: net(a, b).detach().add_(1)), raises(lambda: spoil(net(a, plain))), plain.tolist(),
    )  # fmt: skip


@claim
def results_that_are_no_tensors_call_no_hook(torch: Any) -> Any:
    found = []
    for make in (list, lambda r: {"r": r[0]}, lambda r: None, lambda r: [r], lambda r: Pair(*r), lambda r: (r, 5)):
        seen = []
        net = module(torch, lambda a, make=make: make((a * 2, a * 3)))
        net.register_full_backward_hook(lambda m, i, o, seen=seen: seen.append((shown(i), shown(o))))
        a = ones(torch, 2)
        result = net(a)
        first = result
        while isinstance(first, (list, tuple, dict)):
            first = first["r"] if isinstance(first, dict) else first[0]
        if first is not None:
            first.sum().backward()
        found.append((type(result).__name__, first, seen, shown(a.grad)))
    return found


@claim
def a_named_tuple_as_result(torch: Any) -> Any:
    net, seen = module(torch, lambda a: Pair(a * 2, 5)), []
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    result = net(ones(torch, 2))
    result.first.sum().backward()
    return type(result).__name__, result, seen


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
def copies_have_the_hooks_of_the_original(torch: Any) -> Any:
    net, seen = fan(torch), []
    handle = net.register_full_backward_hook(lambda m, i, o: seen.append("hook"))
    net.register_full_backward_pre_hook(lambda m, o: seen.append("pre"))
    net.register_forward_hook(lambda m, i, o: seen.append("forward"))
    copied = copy.deepcopy(net)
    handle.remove()
    copied(ones(torch, 1, 2)).sum().backward()
    net(ones(torch, 1, 2)).sum().backward()
    return seen, list(net.state_dict()), raises(lambda: copied.register_backward_hook(print))


@claim
def training_goes_on_with_hooks(torch: Any) -> Any:
    net = torch.nn.Sequential(fan(torch), torch.nn.Tanh(), fan(torch))
    net[0].register_full_backward_hook(lambda m, i, o: (i[0] * 0.5,))
    net[2].register_full_backward_hook(lambda m, i, o: (i[0] * 2,))
    net[2].register_full_backward_pre_hook(lambda m, o: (o[0].clamp(-1, 1),))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.tensor([[0.5, -0.25], [0.1, 0.2]])
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (net(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net[0].weight.tolist()


@claim
def hooks_in_a_checkpointed_region(torch: Any) -> Any:
    from importlib import import_module

    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    net, seen = fan(torch), []
    net.register_full_backward_hook(lambda m, i, o: seen.append((shown(i), shown(o))))
    x = ones(torch, 1, 2)
    checkpoint(lambda t: torch.tanh(net(t)) * 2, x, use_reentrant=False).sum().backward()
    return seen, x.grad.tolist(), net.weight.grad.tolist()


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


def test_module_hooks_cost_no_round_trip(round_trips: Any) -> None:
    net = gradwire.nn.Sequential(fan(gradwire), gradwire.nn.ReLU(), fan(gradwire))
    calls = []
    for part in net.modules():
        part.register_full_backward_hook(lambda m, i, o: (calls.append(m), (i[0] * 2,))[1])
        part.register_full_backward_pre_hook(lambda m, o: (o[0] * 2,))
    x = ones(gradwire, 1, 2)
    net(x).sum().backward()
    assert round_trips() == 0
    assert len(calls) == 4
    assert x.grad.tolist() == [[2.0**8 * 22, 2.0**8 * 32]]
    assert round_trips() == 1


def test_warnings_name_the_line_of_the_program(session: Any) -> None:
    def explode(*args: Any) -> None:
        raise ValueError("hook")

    x = ones(gradwire, 1, 2)
    inside = module(gradwire, lambda a: [a * 2])
    inside.register_full_backward_hook(lambda m, i, o: None)
    older = module(gradwire, lambda a: a * 2 * 3)
    older.register_backward_hook(lambda m, i, o: None)
    constant = fan(gradwire)
    constant.register_full_backward_hook(lambda m, i, o: None)
    failing = fan(gradwire)
    failing.register_forward_hook(explode, always_call=True)
    result = constant(gradwire.ones(1, 2))
    for call in (
        lambda: inside(x), lambda: older(x), lambda: result.sum().backward(),
        lambda: pytest.raises(RuntimeError, failing, gradwire.ones(3)),
    ):  # fmt: skip
        with pytest.warns() as caught:
            call()
        (only,) = caught
        assert only.filename == (__file__ if call.__code__.co_argcount == 0 else ""), only
    assert not any(f.startswith(PACKAGE) for f in ())


def test_a_call_without_hooks_is_the_call_of_forward(session: Any) -> None:
    net = gradwire.nn.ReLU()
    net._call_with_hooks = None  # would be called, were there anything to look after
    x = ones(gradwire, 2)
    assert net(x).tolist() == [1.0, 1.0]
    handle = net.register_forward_pre_hook(lambda m, args: None)
    del net._call_with_hooks
    handle.remove()
    net(x)  # notices that the last hook is gone
    net._call_with_hooks = None
    assert net(x).tolist() == [1.0, 1.0]
