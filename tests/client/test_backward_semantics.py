"""``backward`` and ``grad``: arguments, undefined gradients, freed graphs, higher orders, under torch and gradwire."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *values, dtype=None):
    return torch.tensor(values or (1.0, -2.0, 3.0), dtype=dtype, requires_grad=True)


# Arguments of backward


@claim
def several_roots_with_their_gradients(torch):
    x, w = leaf(torch), leaf(torch, 2.0)
    y, z = x * w, (x * x).sum()
    torch.autograd.backward([y, z], [torch.tensor([1.0, 2.0, 3.0]), None])
    return x.grad, w.grad


@claim
def one_root_twice(torch):
    x = leaf(torch)
    z = (x * x).sum()
    torch.autograd.backward([z, z])
    return x.grad


@claim
def a_root_that_another_root_depends_on(torch):
    x = leaf(torch)
    y = x * x
    z = (y * y).sum()
    torch.autograd.backward([z, y], [None, torch.ones(3)])
    return x.grad


@claim
def backward_of_a_leaf(torch):
    x = leaf(torch, 2.0)
    x.backward(torch.tensor([5.0]))
    x.backward(torch.tensor([5.0]))
    return x.grad


@claim
def one_element_of_any_shape_needs_no_gradient(torch):
    x = torch.ones(1, 1, 1, requires_grad=True)
    (x * 3).backward()
    return x.grad


@claim
def inputs_receive_and_others_do_not(torch):
    x, w = leaf(torch), leaf(torch, 2.0)
    (x * w).sum().backward(inputs=[x])
    return x.grad, w.grad


@claim
def one_input_without_a_list(torch):
    x, w = leaf(torch), leaf(torch, 2.0)
    (x * w).sum().backward(inputs=w)
    return x.grad, w.grad


@claim
def an_input_that_is_no_leaf(torch):
    x = leaf(torch)
    y = x * x
    (y * y).sum().backward(inputs=[y])
    return y.grad, x.grad


@claim
def an_input_that_is_no_leaf_and_a_leaf_behind_it(torch):
    x = leaf(torch)
    y = x * x
    (y * y).sum().backward(inputs=[y, x])
    return y.grad, x.grad


@claim
def inputs_accumulate(torch):
    x = leaf(torch)
    for _ in range(3):
        (x * x).sum().backward(inputs=[x])
    return x.grad


@claim
def an_unused_input_stays_without_grad(torch):
    x, w = leaf(torch), leaf(torch, 2.0)
    (x * x).sum().backward(inputs=[x, w])
    return x.grad, w.grad


@claim
def a_gradient_may_require_grad(torch):
    x, v = leaf(torch), leaf(torch, 1.0, 2.0, 3.0)
    (x * x).backward(v)
    return x.grad, v.grad


@claim
def the_gradient_given_is_not_changed_or_shared(torch):
    x, v = leaf(torch), torch.ones(3)
    y = x + 0
    y.backward(v)
    x.grad.mul_(10)
    y.backward(v)
    return v, x.grad


@claim
def a_gradient_of_another_float_dtype(torch):
    x = leaf(torch)
    (x * x).backward(torch.ones(3, dtype=torch.float64))
    return x.grad


@claim
def an_expanded_gradient(torch):
    x = torch.ones(2, 3, requires_grad=True)
    (x * x).backward(torch.tensor([2.0]).expand(2, 3))
    return x.grad


@claim
def grad_outputs_for_several_outputs(torch):
    x = leaf(torch)
    return torch.autograd.grad([x * 2, x**2], x, [torch.ones(3), torch.tensor([1.0, 2.0, 3.0])])


@claim
def grad_leaves_every_grad_alone(torch):
    x, w = leaf(torch), leaf(torch, 2.0)
    found = torch.autograd.grad((x * w).sum(), (x, w))
    return found, x.grad, w.grad


@claim
def grad_of_a_result_between(torch):
    x = leaf(torch)
    y = x.exp()
    z = (y * y).sum()
    return torch.autograd.grad(z, y, retain_graph=True), torch.autograd.grad(z, (y, x))


@claim
def grad_of_the_output_itself(torch):
    x = leaf(torch)
    y = x * 2
    return torch.autograd.grad(y, (y, x), torch.tensor([1.0, 2.0, 3.0]))


@claim
def grad_of_one_input_twice(torch):
    x = leaf(torch)
    return torch.autograd.grad((x * x).sum(), (x, x))


@claim
def unused_inputs(torch):
    x, w = leaf(torch), leaf(torch, 2.0)
    z = (x * x).sum()
    return (
        torch.autograd.grad(z, (x, w), allow_unused=True, retain_graph=True),
        torch.autograd.grad(z, (x, w), materialize_grads=True),
    )


@claim
def an_unused_output_of_several_is_zero(torch):
    x = torch.tensor([[3.0, 1.0], [2.0, 5.0]], requires_grad=True)
    values, places = x.max(1)
    a, b = x.unbind()
    return torch.autograd.grad(values.sum() + b.sum(), x), places.requires_grad, a.requires_grad


ARGUMENTS = {
    "backward of a vector": lambda t: (leaf(t) * 2).backward(),
    "backward without a graph": lambda t: t.ones(()).backward(),
    "backward of a detached tensor": lambda t: (leaf(t) * 2).sum().detach().backward(),
    "backward of an integer tensor": lambda t: t.tensor(1).backward(),
    "backward in no_grad": lambda t: t.no_grad()(lambda: (leaf(t) * 2).sum().backward())(),
    "a gradient of the wrong shape": lambda t: (leaf(t) * 2).backward(t.ones(2)),
    "a gradient that would broadcast": lambda t: (leaf(t) * 2).backward(t.ones(1)),
    "a gradient that is a number": lambda t: (leaf(t) * 2).sum().backward(1.0),
    "a complex gradient of a real tensor": lambda t: (leaf(t) * 2).backward(t.ones(3, dtype=t.complex64)),
    "a real gradient of a complex tensor": lambda t: (leaf(t) * 2j).backward(t.ones(3)),
    "an integer gradient": lambda t: (leaf(t) * 2).backward(t.ones(3, dtype=t.int64)),
    "too few gradients": lambda t: t.autograd.backward([leaf(t) * 2, leaf(t) * 2], [t.ones(3)]),
    "no gradient for one of two": lambda t: t.autograd.backward([leaf(t) * 2, leaf(t).sum()], [None, None]),
    "empty inputs of backward": lambda t: (leaf(t) * 2).sum().backward(inputs=[]),
    "inputs without grad": lambda t: (leaf(t) * 2).sum().backward(inputs=[t.ones(3)]),
    "empty inputs of grad": lambda t: t.autograd.grad(leaf(t).sum(), []),
    "empty outputs of grad": lambda t: t.autograd.grad([], leaf(t)),
    "empty outputs of grad, allowed": lambda t: t.autograd.grad([], leaf(t), allow_unused=True),
    "empty outputs of grad, filled in": lambda t: t.autograd.grad([], leaf(t), materialize_grads=True),
    "backward from nothing": lambda t: t.autograd.backward([]),
    "an input of grad without grad": lambda t: t.autograd.grad(leaf(t).sum(), t.ones(3)),
    "an unused input": lambda t: t.autograd.grad(leaf(t).sum(), leaf(t)),
    "an unused input that is allowed": lambda t: t.autograd.grad(leaf(t).sum(), leaf(t), allow_unused=True),
    "materialize against allow": lambda t: t.autograd.grad(
        leaf(t).sum(), leaf(t), materialize_grads=True, allow_unused=False
    ),
    "outputs that are numbers": lambda t: t.autograd.grad(1.0, leaf(t)),
    "complex loss": lambda t: (leaf(t) * 1j).sum().backward(),
    "grad of a vector": lambda t: t.autograd.grad(leaf(t) * 2, leaf(t), allow_unused=True),
    "both kinds of gradients": lambda t: t.autograd.backward(
        leaf(t).sum(), grad_tensors=t.ones(()), grad_variables=t.ones(())
    ),
    "is_grads_batched with a wrong shape": lambda t: batched(
        t, lambda x: t.autograd.grad(x * x, x, t.ones(2, 2), is_grads_batched=True)
    ),
}


def batched(torch, attempt):
    x = leaf(torch)
    return attempt(x)


@pytest.mark.parametrize("what", ARGUMENTS)
def test_arguments(what):
    same(ARGUMENTS[what])


# Graphs that were freed


FREED = {
    "what saved an operand": lambda x: x * x,
    "what saved a result": lambda x: x.exp(),
    "what saved nothing": lambda x: x + 1,
    "a sum": lambda x: x.sum(),
    "a view": lambda x: x.view(3, 1),
    "a product with a number": lambda x: x * 2,
    "a negation": lambda x: -x,
    "a power": lambda x: x**2,
    "a clone": lambda x: x.clone(),
    "a mean": lambda x: x.mean(),
    "indexing": lambda x: x[1:],
    "indexing by a list": lambda x: x[[0, 1]],
    "relu": lambda x: x.relu(),
    "a matrix product": lambda x: x.reshape(1, 3) @ x.reshape(3, 1),
    "a cast": lambda x: x.double(),
    "cat": lambda x: x.new_zeros(1) if x is None else x.expand(2, 3),
}


def twice(make):
    def attempt(torch):
        x = leaf(torch)
        y = make(x)
        y = y if y.ndim == 0 else y.sum()
        y.backward()
        y.backward()
        return x.grad

    return attempt


@pytest.mark.parametrize("what", FREED)
def test_backward_twice_through(what):
    same(twice(FREED[what]))


@claim
def a_freed_part_of_a_graph(torch):
    x = leaf(torch)
    y = x * x
    y.sum().backward()
    return raises(lambda: (y + 1).sum().backward())


@claim
def a_failed_second_backward_changes_no_grad(torch):
    x = leaf(torch)
    y = (x * x).sum()
    y.backward()
    return raises(lambda: y.backward()), x.grad


@claim
def grad_frees_the_graph_too(torch):
    x = leaf(torch)
    y = (x * x).sum()
    torch.autograd.grad(y, x)
    return raises(lambda: torch.autograd.grad(y, x))


@claim
def retained_as_often_as_wanted(torch):
    x = leaf(torch)
    y = (x * x).sum()
    found = [torch.autograd.grad(y, x, retain_graph=True)[0] for _ in range(3)]
    return found, torch.autograd.grad(y, x), raises(lambda: torch.autograd.grad(y, x))


@claim
def create_graph_retains(torch):
    x = leaf(torch)
    y = (x**3).sum()
    first = torch.autograd.grad(y, x, create_graph=True)[0]
    second = torch.autograd.grad(y, x)[0]
    return first, second, torch.autograd.grad(first.sum(), x)


@claim
def create_graph_without_retaining(torch):
    x = leaf(torch)
    y = (x**3).sum()
    torch.autograd.grad(y, x, create_graph=True, retain_graph=False)
    return raises(lambda: torch.autograd.grad(y, x))


@claim
def a_grad_of_part_of_a_graph_frees_that_part(torch):
    x, w = leaf(torch), leaf(torch)
    y, z = x * x, w * w
    total = (y * 2 + z * 3).sum()
    torch.autograd.grad(total, w)
    return raises(lambda: torch.autograd.grad(y.sum(), x)), raises(lambda: torch.autograd.grad(z.sum(), w))


# Higher orders


@claim
def five_orders(torch):
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = x**6
    found = []
    for _ in range(5):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y.detach())
    return found, y.requires_grad


@claim
def a_constant_derivative_requires_no_grad(torch):
    x = leaf(torch)
    (first,) = torch.autograd.grad((x * 2).sum(), x, create_graph=True)
    return first.requires_grad


@claim
def mixed_second_derivatives(torch):
    x, w = leaf(torch), leaf(torch, 2.0, 0.5, -1.0)
    y = (x.sin() * w.exp()).sum()
    gx, gw = torch.autograd.grad(y, (x, w), create_graph=True)
    return torch.autograd.grad((gx * gw).sum(), (x, w))


@claim
def a_gradient_penalty(torch):
    x, w = leaf(torch), leaf(torch, 0.3, -0.7, 0.2)
    y = torch.tanh(x * w).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    ((g.norm() - 1) ** 2).backward()
    return x.grad, w.grad


@claim
def a_hessian_vector_product_by_double_backward(torch):
    x = leaf(torch)
    v = torch.tensor([1.0, 0.0, 2.0])
    (g,) = torch.autograd.grad((x**4).sum() + x.prod(), x, create_graph=True)
    return torch.autograd.grad(g, x, v)


@claim
def through_the_initial_gradient(torch):
    x, v = leaf(torch), leaf(torch, 1.0, 1.0, 1.0)
    (g,) = torch.autograd.grad(x**3, x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), (x, v))


@claim
def backward_with_create_graph_lets_grad_be_differentiated(torch):
    x = leaf(torch)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    x.grad = None
    (first**2).sum().backward()
    return first.detach(), first.requires_grad, x.grad


@claim
def create_graph_accumulates_differentiably(torch):
    x = leaf(torch)
    (x**2).sum().backward()
    before = x.grad
    (x**3).sum().backward(create_graph=True)
    after = x.grad
    return before is after, before, after.detach(), after.requires_grad


@claim
def grad_without_create_graph_requires_no_grad(torch):
    x = leaf(torch)
    return torch.autograd.grad((x**3).sum(), x)


# Modes around backward


@claim
def backward_inside_no_grad(torch):
    x = leaf(torch)
    y = (x * x).sum()
    with torch.no_grad():
        y.backward()
    return x.grad


@claim
def create_graph_inside_no_grad(torch):
    x = leaf(torch)
    y = (x**3).sum()
    with torch.no_grad():
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g.requires_grad, torch.autograd.grad(g.sum(), x)


# Fan-out and shapes of graphs


@claim
def a_diamond(torch):
    x = leaf(torch)
    y = x * 2
    ((y.sin() * y.cos()).sum() + y.sum()).backward()
    return x.grad


@claim
def one_operand_in_many_places(torch):
    x = leaf(torch)
    y = x
    for _ in range(20):
        y = y + x * 0.1
    y.sum().backward()
    return x.grad


@claim
def broadcast_operands_receive_sums(torch):
    a = torch.arange(3.0).reshape(3, 1).detach().requires_grad_()
    b = torch.arange(4.0).detach().requires_grad_()
    c = torch.tensor(2.0, requires_grad=True)
    (a * b * c + b).sum().backward()
    return a.grad, b.grad, c.grad


@claim
def empty_tensors(torch):
    x = torch.ones(0, 3, requires_grad=True)
    (x * x).sum().backward()
    return x.grad


@claim
def a_branch_that_stops_at_detach(torch):
    x = leaf(torch)
    y = x * 2
    (y * y.detach()).sum().backward()
    return x.grad


@claim
def a_leaf_that_does_not_require_grad_is_left_out(torch):
    x, w = leaf(torch), torch.ones(3)
    y = (x * w).sum()
    y.backward()
    return x.grad, w.grad


@claim
def a_leaf_told_later_to_require_grad_is_left_out(torch):
    x, w = leaf(torch), torch.ones(3)
    y = (x * w).sum()
    w.requires_grad_()
    y.backward()
    return x.grad, w.grad


@claim
def a_leaf_told_later_to_stop(torch):
    x = leaf(torch)
    y = (x * x).sum()
    x.requires_grad_(False)
    y.backward()
    return x.grad


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
