"""Where gradients arrive: retained ones, backward's inputs, unused outputs and inputs, under torch and gradwire."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
import torch
from tests.side_by_side import Claims, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *values):
    return torch.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


def seen(tensor):
    """The gradient of a tensor as numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return None if tensor.grad is None else tensor.grad.tolist()


def doubled(gradients):
    return tuple([None if g is None else g * 2 for g in gradients])


# Retained gradients


@claim
def a_retained_gradient_grows_after_it_was_looked_at(torch):
    h = leaf(torch) * 3
    h.retain_grad()
    o = (h * h).sum()
    found = []
    for _ in range(3):
        o.backward(retain_graph=True)
        found.append(seen(h))
    return found


@claim
def a_retained_gradient_is_a_new_tensor_each_time(torch):
    h = leaf(torch) * 3
    h.retain_grad()
    o = (h * h).sum()
    o.backward(retain_graph=True)
    first = h.grad
    o.backward(retain_graph=True)
    return first is h.grad, first, h.grad


@claim
def a_retained_gradient_that_was_assigned_is_added_to(torch):
    h = leaf(torch) * 3
    h.retain_grad()
    h.grad = torch.full((3,), 100.0)
    given = h.grad
    (h * h).sum().backward()
    return given, h.grad


@claim
def a_retained_gradient_is_taken_after_tensor_hooks_and_before_pre_hooks(torch):
    x = leaf(torch)
    v = x * 1
    v.retain_grad()
    v.register_hook(lambda g: g + 10)
    v.grad_fn.register_prehook(doubled)
    (v**2).sum().backward()
    return v.grad, x.grad


@claim
def a_pre_hook_does_not_change_what_an_input_of_backward_receives(torch):
    x = leaf(torch)
    v = x * 1
    v.grad_fn.register_prehook(doubled)
    (v**2).sum().backward(inputs=[x, v])
    return v.grad, x.grad


@claim
def grad_fills_what_is_retained_on_its_way(torch):
    x = leaf(torch)
    v = x * 1
    w = v * 2
    v.retain_grad()
    w.retain_grad()
    torch.autograd.grad((w * w).sum(), [v])
    return v.grad, w.grad, x.grad


@claim
def grad_leaves_what_is_retained_beside_its_way_alone(torch):
    x, y = leaf(torch), leaf(torch)
    v, w = x * 2, y * 2
    w.retain_grad()
    torch.autograd.grad((v * w).sum(), [x])
    return w.grad, v.requires_grad


@claim
def a_retained_gradient_has_history_under_create_graph(torch):
    x = leaf(torch)
    v = x * 1
    v.retain_grad()
    (v**3).sum().backward(create_graph=True)
    first = v.grad
    (second,) = torch.autograd.grad(first.sum(), [x], retain_graph=True)
    (v**3).sum().backward(retain_graph=True)
    return first.requires_grad, second, v.grad


@claim
def a_retained_gradient_of_a_view_is_up_to_date(torch):
    x, w = leaf(torch), leaf(torch, 1.0, 1.0)
    v = (torch.outer(x, x) * 1).diagonal()
    v.sum().backward(inputs=[v, w], retain_graph=True)
    first = seen(v)
    (v**2).sum().backward(retain_graph=True)
    return first, v.grad, w.grad


@claim
def a_view_that_is_looked_at_after_a_write_takes_the_gradient_of_its_new_place(torch):
    found = []
    for look in (False, True):
        y = leaf(torch) * 2
        v = y[1:]
        v.retain_grad()
        z = v * 5
        y.mul_(3)
        if look:
            _ = v.grad_fn
        (z.sum() + y.sum()).backward()
        found.append(seen(v))
        v.sum().backward()
        found.append(seen(v))
    return found


# Inputs of backward


@claim
def an_input_of_backward_that_is_no_leaf_runs_its_node(torch):
    order = []
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: order.append("tensor"))
    y.grad_fn.register_prehook(lambda g: order.append("pre"))
    y.grad_fn.register_hook(lambda i, o: order.append(["post", [g is None for g in i], o[0].tolist()]))
    y.sum().backward(inputs=[y])
    return order, y.grad, x.grad


@claim
def an_input_of_backward_whose_graph_is_freed_is_refused(torch):
    x = leaf(torch)
    y = x * x
    y.sum().backward()
    y.sum().backward(inputs=[y])


@claim
def backward_frees_the_node_of_an_input(torch):
    x = leaf(torch)
    y = x * x
    y.sum().backward(inputs=[y])
    y.sum().backward()


@claim
def an_input_of_backward_that_is_not_reached_has_no_gradient(torch):
    x, w = leaf(torch), leaf(torch)
    v = w * 2
    (x * x).sum().backward(inputs=[x, w, v])
    return x.grad, w.grad, seen(v)


@claim
def a_custom_derivative_runs_for_an_input_of_backward(torch):
    ran = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ran.append(g.tolist())
            return g * 2

    x = leaf(torch)
    y = Twice.apply(x)
    y.sum().backward(inputs=[y])
    return ran, y.grad, x.grad


# Order of hooks


@claim
def the_hook_after_accumulation_comes_before_the_accumulator_s_own(torch):
    order = []
    x = leaf(torch)
    y = x * 2
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_hook(lambda *_: order.append("post"))
    accumulator.register_prehook(lambda *_: order.append("pre"))
    x.register_post_accumulate_grad_hook(lambda t: order.append(["accumulated", t.grad.tolist()]))
    x.register_hook(lambda g: order.append("tensor"))
    y.sum().backward()
    return order


# What was not used


def _parts(torch, x):
    square = torch.outer(x, x) + torch.diag(x * x)
    return {
        "chunk": lambda: x.chunk(3), "split": lambda: x.split(1), "unbind": lambda: x.unbind(),
        "unsafe_chunk": lambda: x.unsafe_chunk(3), "unsafe_split": lambda: x.unsafe_split(1),
        "split_with_sizes": lambda: x.split((1, 2)), "tensor_split": lambda: x.tensor_split(3),
        "var_mean": lambda: torch.var_mean(x), "std_mean": lambda: torch.std_mean(x),
        "aminmax": lambda: torch.aminmax(x), "eigh": lambda: torch.linalg.eigh(square),
        "svd": lambda: torch.linalg.svd(square), "qr": lambda: torch.linalg.qr(square),
        "slogdet": lambda: torch.linalg.slogdet(square), "frexp": lambda: torch.frexp(x)[:1],
    }  # fmt: skip


PARTS = list(_parts(torch, torch.ones(3)))


@pytest.mark.parametrize("name", PARTS)
def test_unused_outputs_have_no_gradient(name: str) -> None:
    def unused(torch):
        found = []
        count = len([p for p in _parts(torch, leaf(torch))[name]() if p.requires_grad])
        for used in range(count):
            x = leaf(torch)
            parts = [p for p in _parts(torch, x)[name]() if p.requires_grad]
            parts[0].retain_grad()
            loss = (parts[used] * parts[used].detach()).sum()
            gradients = torch.autograd.grad(loss, parts, retain_graph=True, allow_unused=True)
            found.append([g is None for g in gradients])
            found.append(seen(parts[0]) is None)
            loss.backward(inputs=parts, retain_graph=True)
            found.append([seen(p) is None for p in parts])
            try:
                torch.autograd.grad(loss, parts, retain_graph=True)
                found.append("used")
            except RuntimeError:
                found.append("refused")
        return found

    same(unused)


@claim
def unused_outputs_of_a_custom_function_have_no_gradient(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    a, b = Both.apply(leaf(torch))
    return torch.autograd.grad((b * b).sum(), [a, b], allow_unused=True)


@claim
def unused_outputs_of_a_recurrent_layer_have_no_gradient(torch):
    x, h, c = torch.ones(2, 1, 3, requires_grad=True), torch.ones(1, 1, 3), torch.ones(1, 1, 3)
    weights = [torch.full(s, 0.1, requires_grad=True) for s in ((12, 3), (12, 3), (12,), (12,))]
    y, hn, cn = torch.lstm(x, (h, c), weights, True, 1, 0.0, False, False, False)
    gradients = torch.autograd.grad(cn.sum(), [x, cn], allow_unused=True)
    return [g is None for g in gradients], y.shape, hn.shape


@claim
def an_unused_output_is_filled_in_or_refused(torch):
    a, b = leaf(torch, 1.0, 2.0, 3.0, 4.0).chunk(2)
    filled = torch.autograd.grad((b * b).sum(), [a, b], materialize_grads=True, retain_graph=True)
    return filled, torch.autograd.grad((b * b).sum(), [a, b])


@claim
def zeros_that_are_filled_in_under_create_graph_require_grad(torch):
    x, u = leaf(torch), leaf(torch)
    filled = torch.autograd.grad((x * 3).sum(), [x, u], create_graph=True, materialize_grads=True)
    plain = torch.autograd.grad((x * 3).sum(), [x, u], materialize_grads=True)
    return filled, plain, torch.autograd.grad(filled[1].sum(), [filled[1]])[0].tolist()


@claim
def batched_gradients_are_filled_in_with_plain_zeros(torch):
    x, u = leaf(torch), leaf(torch, 1.0, 2.0)
    return torch.autograd.grad(x * 3, [x, u], torch.eye(3), is_grads_batched=True, materialize_grads=True)


@claim
def a_gradient_that_depends_on_nothing_does_not_require_grad(torch):
    r = torch.ones(5, requires_grad=True)
    x = torch.ones(5)
    v = x[1]
    x.add_(r)
    (first,) = torch.autograd.grad(v, [r], create_graph=True)
    return first


@claim
def the_second_derivative_through_a_regenerated_view(torch):
    r = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = torch.ones(3)
    v = x[1:]
    x.add_(r * r * r)
    (first,) = torch.autograd.grad((v * v).sum(), [r], create_graph=True)
    return first, torch.autograd.grad(first.sum(), [r])


@claim
def an_initial_gradient_that_is_passed_on_is_the_gradient(torch):
    x = leaf(torch)
    given = torch.ones(3, requires_grad=True)
    y = x * 3
    (r,) = torch.autograd.grad(y, [y], [given], create_graph=True)
    return r is given, torch.autograd.grad(r.sum(), [given], allow_unused=True)[0].tolist()


@claim
def a_view_made_under_no_grad_was_not_used(torch):
    x = leaf(torch) * 1
    with torch.no_grad():
        v = x[:2]
    return torch.autograd.grad((x * x).sum(), [v], allow_unused=True), v.requires_grad


@claim
def a_view_made_under_no_grad_is_refused_where_inputs_must_be_used(torch):
    x = leaf(torch) * 1
    with torch.no_grad():
        v = x[:2]
    torch.autograd.grad((x * x).sum(), [v])


# Views and detach_


@claim
def a_written_view_keeps_its_history_when_the_base_is_detached(torch):
    x = leaf(torch)
    y = x * 3
    w = y[None]
    w.mul_(0.5)
    y.detach_()
    w.sum().backward()
    return x.grad, y.requires_grad, w.requires_grad


@claim
def a_view_that_was_not_written_loses_its_history_when_the_base_is_detached(torch):
    x = leaf(torch)
    y = x * 3
    w, u = y[None], y[:2]
    w.mul_(0.5)
    y.detach_()
    u.sum().backward()
    return x.grad


@claim
def looking_at_the_gradient_of_a_stale_view_refuses_nothing(torch):
    y = leaf(torch) * 3
    parts = y.unbind()
    y.mul_(2)
    return [seen(p) for p in parts], [p.requires_grad for p in parts]


@claim
def a_leaf_that_was_detached_takes_no_gradient(torch):
    x, y = leaf(torch), leaf(torch)
    z = x + y
    y.grad_fn
    y.register_hook(lambda g: None)
    x.detach_()
    z.sum().backward()
    return seen(x), y.grad


@claim
def gradients_with_history_are_zeroed_in_place(torch):
    x = leaf(torch)
    (x * x).sum().backward(create_graph=True)
    looked_at = x.grad
    torch.optim.SGD([x], lr=0.1).zero_grad(set_to_none=False)
    found = [looked_at is x.grad, x.grad.requires_grad, x.grad.tolist()]
    (x * 3).sum().backward()
    return found, x.grad


# Classes of nodes


@claim
def a_node_is_an_instance_of_a_class_of_its_name(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(torch)
    written = x * 2
    written[0].mul_(3)
    (gradient,) = torch.autograd.grad((x**3).sum(), [x], create_graph=True)
    nodes = [
        (x + 1).grad_fn, (x * x).grad_fn, F.apply(x).grad_fn, (x * x).grad_fn.next_functions[0][0], written.grad_fn,
        gradient.grad_fn,
    ]  # fmt: skip
    return (
        [repr(type(n)) for n in nodes], [isinstance(n, torch.autograd.graph.Node) for n in nodes],
        type((x * 1).grad_fn) is type(nodes[1]), nodes[1] == nodes[1], len({*nodes, nodes[0]}),
    )  # fmt: skip


@claim
def a_node_is_not_copied(torch):
    copy.deepcopy(leaf(torch).exp().grad_fn)


@claim
def a_node_is_not_pickled(torch):
    pickle.dumps(leaf(torch).exp().grad_fn)


# Gradient edges


@claim
def gradient_edges_stand_for_tensors(torch):
    edge_of = torch.autograd.graph.get_gradient_edge
    x = leaf(torch)
    y = x * 2
    loss = (y * y).sum()
    by_edge = torch.autograd.grad(loss, [edge_of(y), edge_of(x)], retain_graph=True)
    from_edge = torch.autograd.grad(edge_of(loss), [x], grad_outputs=[torch.tensor(2.0)], retain_graph=True)
    implicit = torch.autograd.grad(edge_of(loss), x, retain_graph=True)
    torch.autograd.backward(edge_of(loss), inputs=edge_of(x), retain_graph=True)
    torch.autograd.backward([edge_of(loss)], [torch.tensor(3.0)])
    return by_edge, from_edge, implicit, x.grad


@claim
def a_gradient_edge_outlives_its_tensor(torch):
    x = leaf(torch)
    edge = torch.autograd.graph.get_gradient_edge(x * x)
    return torch.autograd.grad(edge, [x], grad_outputs=[torch.ones(3)])


@claim
def a_gradient_edge_names_an_output(torch):
    x = leaf(torch, 1.0, 2.0, 3.0, 4.0)
    a, b = x.chunk(2)
    edges = [torch.autograd.graph.get_gradient_edge(t) for t in (a, b)]
    found = torch.autograd.grad((b * b).sum(), edges, allow_unused=True)
    return [e.output_nr for e in edges], found


@claim
def a_gradient_edge_as_input_accumulates_nothing_in_its_tensor(torch):
    x = leaf(torch)
    y = x * 2
    (y * y).sum().backward(inputs=[torch.autograd.graph.get_gradient_edge(y)])
    return seen(y), x.grad


@claim
def a_gradient_edge_cannot_be_filled_in(torch):
    x = leaf(torch)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y * 1)
    torch.autograd.grad(y.sum(), edge, allow_unused=True, materialize_grads=True)


@claim
def a_gradient_edge_from_several_elements_needs_a_gradient(torch):
    x = leaf(torch)
    torch.autograd.grad(torch.autograd.graph.get_gradient_edge(x * x), [x])


@pytest.mark.parametrize("claim", list(claim), ids=name_of)
def test_claim(claim) -> None:
    same(claim)
