"""Hooks on the tensors that operations save for backward."""

from __future__ import annotations

from typing import Any

import pytest
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

claim = Claims()


@claim
def what_is_packed_is_unpacked_in_backward(torch: Any) -> Any:
    order = []

    def pack(x: Any) -> Any:
        order.append(("pack", x.tolist(), x.requires_grad))
        return x.tolist()

    def unpack(values: Any) -> Any:
        order.append(("unpack", values))
        return torch.tensor(values) * 10

    a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (a * b).exp() + a
    y.sum().backward()
    return order, a.grad.tolist(), b.grad.tolist(), y


@claim
def hooks_that_are_not_in_force_do_not_end(torch: Any) -> Any:
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    with hooks:
        pass
    return raises(hooks.__exit__)


@claim
def hooks_that_an_unpack_hook_puts_in_force_end_with_the_backward(torch: Any) -> Any:
    hooks = torch.autograd.graph.saved_tensors_hooks
    order = []

    def unpack(x: Any) -> Any:
        hooks(lambda t: (order.append("left in force"), t)[1], lambda t: t).__enter__()
        return x

    found = []
    for retain_graph in (False, True):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with hooks(lambda t: t, unpack):
            y = x.exp()
        y.sum().backward(retain_graph=retain_graph)
        x.sin().sum().backward()
        found.append(x.grad.tolist())
    return order, found


@claim
def the_innermost_hooks_are_called(torch: Any) -> Any:
    order = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with hooks(lambda t: (order.append("outer"), t)[1], lambda t: t):
        y = x * x
        with hooks(lambda t: (order.append("inner"), t)[1], lambda t: t):
            z = y.sin()
        z = z.exp()
    z.sum().backward()
    return order, x.grad


@claim
def higher_derivatives_go_through_hooks(torch: Any) -> Any:
    x = torch.tensor([0.5, 2.0], requires_grad=True, dtype=torch.float64)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone()):
        y = (x**3).exp() * x
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
    return g.tolist(), h.tolist()


@claim
def custom_functions_are_hooked_too(torch: Any) -> Any:
    order = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    x = torch.tensor([0.5, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (order.append("pack"), t)[1], lambda t: (order.append("unpack"), t * 2)[1]
    ):
        y = Square.apply(x)
    y.sum().backward()
    return order, x.grad


@claim
def hooks_can_be_forbidden(torch: Any) -> Any:
    graph = torch.autograd.graph

    def enter() -> Any:
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return 1

    with graph.disable_saved_tensors_hooks("not here"):
        found = raises(enter)
    return found, enter()


@claim
def an_unpack_hook_returns_a_tensor(torch: Any) -> Any:
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 5):
        y = x * x
    return raises(lambda: y.sum().backward())


@claim
def a_retained_graph_is_unpacked_again(torch: Any) -> Any:
    order = []
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (order.append(1), t)[1]):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    return order, x.grad, raises(y.backward)


@claim
def saved_on_cpu_gradients_are_the_same(torch: Any) -> Any:
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = (x * x).exp().sum()
    y.backward()
    return x.grad


@claim
def saved_tensors_may_be_changed_where_that_is_allowed(torch: Any) -> Any:
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as kept:
        a = x * 1
        y = (a**2).sum()
        z = (a * a).exp()
        z.mul_(3)
        a.sin_()
        (y + z.sum() + a.sum()).backward()
        found = x.grad.tolist()
        out = x.exp().sum()
        nested = raises(lambda: torch.autograd.graph.allow_mutation_on_saved_tensors().__enter__())
    return found, raises(out.backward), nested, a, z, len(kept.cloned)


def hooked(torch: Any, change: Any, forward: Any) -> Any:
    x = torch.tensor([2.0, 3.0], requires_grad=True)

    def pack(tensor: Any) -> Any:
        change(torch, tensor)
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = forward(x)
    y.sum().backward()
    return x.grad


CHANGES = {
    "in place": lambda torch, t: t.mul_(2), "by index": lambda torch, t: t.__setitem__(0, 1.0),
    "through detach": lambda torch, t: t.detach().add_(1), "through a view": lambda torch, t: t[1:].zero_(),
    "not at all": lambda torch, t: t * 2,
}  # fmt: skip
FORWARDS = {
    "a result": lambda x: (x * 1).square(), "a leaf": lambda x: x * x, "its own result": lambda x: x.exp(),
    "one of several": lambda x: (x * 1) * x.sin(),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("forward", FORWARDS)
def test_a_pack_hook_must_not_change_what_it_is_given(change: str, forward: str) -> None:
    same(lambda torch: hooked(torch, CHANGES[change], FORWARDS[forward]))


@pytest.mark.parametrize("run", claim.all, ids=name_of)
def test_as_in_pytorch(run: Any) -> None:
    same(run)


def test_hooks_that_look_at_nothing_cost_no_round_trip(round_trips: Any) -> None:
    x = gradwire.ones(3, requires_grad=True)
    with gradwire.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = (x * x).exp().sum()
    y.backward()
    assert round_trips() == 0
    assert x.grad.tolist() == pytest.approx([2 * 2.718281828] * 3)
    assert round_trips() == 1


def test_the_server_keeps_what_the_hooks_returned_and_nothing_else(session: Any) -> None:
    x = gradwire.ones(100_000, requires_grad=True)
    before = session.memory()["live_bytes"]
    with gradwire.autograd.graph.saved_tensors_hooks(lambda t: None, lambda _: gradwire.ones(100_000)):
        y = x.exp().exp().exp().sum()
    assert session.memory()["live_bytes"] - before < 100_000
    y.backward()
    assert x.grad.sum().item() == 100_000


def test_what_is_saved_several_times_is_copied_once_before_a_change() -> None:
    def claim(torch: Any) -> Any:
        with torch.autograd.graph.allow_mutation_on_saved_tensors() as kept:
            x = torch.arange(6.0, requires_grad=True)
            h = x.clone()
            results = [h**2, h**3, h.view(2, 3) ** 2]
            h.sin_()
            copies = [len(list(kept.cloned.items()))]
            results.append(h**2)
            h.cos_()
            copies.append(len(list(kept.cloned.items())))
            sum(r.sum() for r in results).backward()
            del results
            return copies, x.grad, len(list(kept.cloned.items()))

    same(claim)
