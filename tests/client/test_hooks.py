"""Hooks on tensors and nodes: when they run, in which order, and what they may return."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

claim = Claims()


def shown(gradients: Any) -> Any:
    if isinstance(gradients, (tuple, list)):
        return [shown(g) for g in gradients]
    return None if gradients is None else gradients.tolist()


@claim
def a_tensor_hook_replaces_the_gradient(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: (seen.append(shown(g)), g * 10)[1])
    y.register_hook(lambda g: seen.append(shown(g)))
    x.register_hook(lambda g: (seen.append(shown(g)), g + 1)[1])
    (y * y).sum().backward()
    return seen, x.grad.tolist()


@claim
def all_kinds_run_in_order(torch: Any) -> Any:
    order = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    y.grad_fn.register_hook(lambda i, o: order.append(("post", shown(i), shown(o))))
    y.grad_fn.register_prehook(lambda g: order.append(("pre", shown(g))))
    y.register_hook(lambda g: order.append(("tensor", shown(g))))
    x.register_hook(lambda g: order.append(("leaf", shown(g))))
    x.register_post_accumulate_grad_hook(lambda p: order.append(("accumulated", shown(p.grad))))
    (y * y).backward()
    return order


@claim
def node_hooks_replace_gradients(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(5.0, requires_grad=True)
    y = x * w
    y.grad_fn.register_prehook(lambda g: (g[0] * 2,))
    y.grad_fn.register_hook(lambda i, o: (i[0] + 1, None if i[1] is None else i[1] * 0))
    y.backward()
    return x.grad.tolist(), w.grad.tolist()


@claim
def node_hooks_remove_gradients(torch: Any) -> Any:
    found = []
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    y = x * 3
    z = y * w
    z.grad_fn.register_hook(lambda i, o: (None, i[1]))
    z.sum().backward()
    found.append(shown([x.grad, w.grad]))
    y = x * 3
    y.grad_fn.register_prehook(lambda g: (None,))
    y.sum().backward()
    found.append(shown(x.grad))
    (x * 1).sum().backward()
    return found, x.grad.tolist()


@claim
def captures_see_hooks_as_in_pytorch(torch: Any) -> Any:
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: (seen.append(shown(g)), g * 10)[1])
    z = y * y
    grads = [
        shown(torch.autograd.grad(z, inputs, retain_graph=True)) for inputs in (y, [x, y], x)
    ]  # fmt: skip
    x.register_hook(lambda g: (seen.append(shown(g)), g * 100)[1])
    x.register_post_accumulate_grad_hook(lambda p: seen.append(shown(p.grad)))
    grads.append(shown(torch.autograd.grad(z, x, retain_graph=True)))
    z.backward(inputs=[x], retain_graph=True)
    y.retain_grad()
    z.backward(retain_graph=True)
    grads.append(shown([x.grad, y.grad]))
    y.grad = None
    z.backward(inputs=[y], retain_graph=True)
    grads.append(shown([x.grad, y.grad]))
    return seen, grads


@claim
def inputs_that_are_no_leaves_retain_their_gradient(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    (y * y).backward(inputs=[y])
    return shown([x.grad, y.grad]), y.retains_grad


@claim
def hooks_of_outputs_without_a_gradient_see_none(torch: Any) -> Any:
    seen = []
    a, b = torch.ones(2, requires_grad=True).unbind(0)
    b.register_hook(lambda g: seen.append(("tensor", shown(g))))
    a.grad_fn.register_prehook(lambda g: seen.append(("pre", shown(g))))
    a.grad_fn.register_hook(lambda i, o: seen.append(("post", shown(i), shown(o))))
    a.backward()
    return seen


@claim
def a_removed_hook_does_not_run(torch: Any) -> Any:
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    first = x.register_hook(lambda g: seen.append(1))
    x.register_hook(lambda g: seen.append(2))
    first.remove()
    first.remove()
    with x.register_hook(lambda g: seen.append(3)):
        (x * 1).backward()
    (x * 1).backward()
    return seen


@claim
def what_hooks_return_is_checked(torch: Any) -> Any:
    found = []
    for value in (5, "no", torch.ones(3), torch.ones(2, dtype=torch.float64)):
        x = torch.ones(2, requires_grad=True)
        x.register_hook(lambda g, value=value: value)
        found.append(raises(lambda x=x: (x * 1).sum().backward()))
    for value in (5, (None, None)):
        y = torch.ones(2, requires_grad=True) * 1
        y.grad_fn.register_hook(lambda i, o, value=value: value)
        found.append(raises(lambda y=y: y.sum().backward()))
    return found


@claim
def hooks_need_a_tensor_that_requires_grad(torch: Any) -> Any:
    x = torch.ones(2)
    y = torch.ones(2, requires_grad=True) * 1
    return (
        raises(lambda: x.register_hook(print)), raises(lambda: x.register_post_accumulate_grad_hook(print)),
        raises(lambda: y.register_post_accumulate_grad_hook(print)),
    )  # fmt: skip


@claim
def a_hook_stays_with_the_operation_from_before_a_change_in_place(torch: Any) -> Any:
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(shown(g)))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(shown(g)))
    (y * 3).sum().backward()
    return seen, x.grad.tolist()


@claim
def a_hook_on_the_accumulator_reached_through_the_graph(torch: Any) -> Any:
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2 + 1
    node = y.grad_fn.next_functions[0][0]
    node.register_hook(lambda i, o: seen.append((shown(i), shown(o))))
    accumulator = node.next_functions[0][0]
    accumulator.register_prehook(lambda g: seen.append(shown(g)))
    accumulator.register_hook(lambda i, o: seen.append((shown(i), shown(o))))
    y.sum().backward()
    return seen


@claim
def gradients_in_hooks_have_history_when_backward_is_recorded(torch: Any) -> Any:
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x**2
    y.register_hook(lambda g: (seen.append((g * 2).requires_grad), g * x)[1])
    (g,) = torch.autograd.grad(y * x, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    y = x**2
    y.register_hook(lambda g: seen.append((g * 2).requires_grad))
    (y * x).backward()
    return seen, g.tolist(), h.tolist()


@claim
def an_exception_in_a_hook_leaves_backward(torch: Any) -> Any:
    def explode(g: Any) -> None:
        raise KeyError("mine")

    x = torch.tensor(2.0, requires_grad=True)
    handle = x.register_hook(explode)
    found = raises((x * 2).backward)
    handle.remove()
    (x * 2).backward()
    return found, x.grad.tolist()


@claim
def a_hook_may_call_backward(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    y = x * 2

    def inner(g: Any) -> None:
        with torch.enable_grad():
            z = w * w
        z.backward()

    y.register_hook(inner)
    y.backward()
    return x.grad.tolist(), w.grad.tolist()


@claim
def multi_grad_hooks_wait_for_all(torch: Any) -> Any:
    seen = []
    t = [torch.ones(2, requires_grad=True) for _ in range(3)]
    handle = torch.autograd.graph.register_multi_grad_hook(t, lambda gs: seen.append(shown(gs)))
    torch.autograd.graph.register_multi_grad_hook(t, lambda g: seen.append(shown(g)), mode="any")
    (t[0] * t[1]).sum().backward()
    (t[0] * t[1] * t[2]).sum().backward()
    handle.remove()
    t[0].sum().backward()
    return seen


@pytest.mark.parametrize("run", claim.all, ids=name_of)
def test_as_in_pytorch(run: Any) -> None:
    same(run)


def test_hooks_cost_no_round_trip(round_trips: Any) -> None:
    x = gradwire.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 3)
    x.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(2), None)[1])
    (y * y).sum().backward()
    assert round_trips() == 0
    assert x.grad.tolist() == [48.0, 48.0, 48.0]
    assert round_trips() == 1


def test_threads_go_backward_with_hooks_at_the_same_time() -> None:
    import threading

    found: dict[int, Any] = {}

    def work(number: int) -> None:
        x = gradwire.ones(2, requires_grad=True)
        for _ in range(20):
            y = x * number
            y.register_hook(lambda g: g * 2)
            with gradwire.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
                z = y * y
            z = gradwire.utils.checkpoint.checkpoint(lambda z: z.exp().log(), z, use_reentrant=False)
            z.sum().backward()
        found[number] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {n: pytest.approx([20 * 4.0 * n * n] * 2, rel=1e-4) for n in (1, 2, 3)}


def test_steps_with_callbacks_leave_nothing_behind(session: Any) -> None:
    class Square(gradwire.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    x = gradwire.ones(100, requires_grad=True)

    def step() -> None:
        y = Square.apply(x * 1)
        y.register_hook(lambda g: g * 2)
        y.grad_fn.register_hook(lambda i, o: None)
        with gradwire.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            z = y.exp()
        gradwire.utils.checkpoint.checkpoint(lambda z: z.sin() * z, z, use_reentrant=False).sum().backward()
        x.grad = None

    def held() -> tuple[int, int, int]:
        session.synchronize()
        described = session.describe()["contents"]
        return described["tensors"], described["memory"]["live_bytes"], described["graph_nodes"]

    gc.collect()  # what other tests left behind
    gc.collect()  # what other tests left
    step()
    before = held()
    for _ in range(100):
        step()
    assert held() == before


def test_a_step_with_callbacks_repeats_its_structure(session: Any) -> None:
    x = gradwire.ones(100, requires_grad=True)

    def step() -> int:
        session.synchronize()
        before = session.stats()["bytes_sent"]
        y = x * 2
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        session.synchronize()
        return session.stats()["bytes_sent"] - before

    with session.lock:  # frames are cut by the program alone
        sizes = [step() for _ in range(6)]
    assert min(sizes[2:]) < 0.7 * sizes[0]
