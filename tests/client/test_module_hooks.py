"""Backward hooks of modules: when they run, what they get and what they may return."""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import pytest
from tests.hooked_modules import failure, fan, module, ones, product, shown
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

claim = Claims()

Pair = namedtuple("Pair", "first second")


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
    for category, call in (
        (UserWarning, lambda: inside(x)),
        (FutureWarning, lambda: older(x)),
        (UserWarning, lambda: result.sum().backward()),
        (UserWarning, lambda: raises(lambda: failing(gradwire.ones(3)))),
    ):
        with pytest.warns(category, match="hook") as caught:
            call()
        assert [w.filename for w in caught] == [__file__]


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
