"""In-place writes that autograd or memory layout forbid, at the write or at backward, under torch and gradwire."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, leaf, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


# Saved tensors that changed


def saved_and_changed(change):
    def attempt(torch):
        x = leaf(torch, 4)
        y = x * 1
        z = (y**2).sum()
        change(torch, y)
        z.backward()
        return x.grad

    return attempt


CHANGES = {
    "directly": lambda torch, y: y.add_(1),
    "by index": lambda torch, y: y.__setitem__(0, 1.0),
    "through a view": lambda torch, y: y[1:].mul_(2),
    "through a view of a view": lambda torch, y: y[1:][0].zero_(),
    "through detach": lambda torch, y: y.detach().zero_(),
    "through a view of detach": lambda torch, y: y.detach()[0].fill_(1),
    "under no_grad": lambda torch, y: torch.no_grad()(lambda: y.add_(1))(),
    "through data": lambda torch, y: y.data.add_(1),
    "by copy_": lambda torch, y: y.copy_(torch.ones(4)),
    "by zero_": lambda torch, y: y.zero_(),
    "not at all": lambda torch, y: y.add(1),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_saved_tensor_that_changed(how):
    same(saved_and_changed(CHANGES[how]))


@claim
def a_saved_result_that_changed(torch):
    x = leaf(torch, 3)
    y = x.exp()
    y.add_(1)
    y.sum().backward()
    return x.grad


@claim
def a_changed_tensor_that_nobody_saved(torch):
    x = leaf(torch, 3)
    y = x + 1
    z = y + 2
    y.mul_(5)
    z.sum().backward()
    return x.grad


@claim
def a_view_of_a_saved_base_that_changed(torch):
    x = leaf(torch, 4)
    y = x * 1
    z = y[2:] ** 2
    y[0] = 9.0
    z.sum().backward()
    return x.grad


# Saved tensors that were detached in place

DETACHED = {
    "an operand": lambda torch, x: (y := x * 2, (y * y).sum()),
    "an operand of another": lambda torch, x: (y := x * 2, (y * x).sum()),
    "a result that its own node keeps": lambda torch, x: (y := x.exp(), y.sum()),
    "a leaf": lambda torch, x: (x, (x * x).sum()),
    "one that nobody keeps": lambda torch, x: (y := x * 2, (y + y).sum()),
    "a tensor without gradient": lambda torch, x: (y := torch.ones(3), (y * x).sum()),
    "one that an operation keeps by a view": lambda torch, x: (y := x * 2, (y[:2] * y[1:]).sum()),
    "one that an operation keeps by a copy": lambda torch, x: (y := x * 2, (y.clone() * x).sum()),
}


@pytest.mark.parametrize("how", DETACHED)
@pytest.mark.parametrize("by", ["backward", "grad", "backward twice", "backward with a graph", "backward for inputs"])
def test_a_saved_tensor_that_was_detached_in_place(how, by):
    def attempt(torch):
        x = leaf(torch, 3)
        kept, total = DETACHED[how](torch, x)
        kept.detach_()
        if by == "grad":
            return torch.autograd.grad(total, [x], allow_unused=True)
        if by == "backward twice":
            total.backward(retain_graph=True)
        total.backward(
            **{"backward with a graph": {"create_graph": True}, "backward for inputs": {"inputs": [x]}}.get(by, {})
        )
        return x.grad

    same(attempt)


@claim
def a_state_detached_in_place_at_each_step(torch):
    w, h, found = leaf(torch, 3), torch.ones(3), []
    for _ in range(3):
        h = (h * w).sin()
        (h * h).sum().backward()
        h.detach_()
        found.append(w.grad.clone())
    return found


# Leaves that moved, graphs that were freed


@claim
def a_saved_constant_that_a_leaf_is_written_into(torch):
    base, w, a = torch.zeros(3), leaf(torch, 3), leaf(torch, 1)
    z = base * w
    base[0] = a[0]
    z.sum().backward()
    return w.grad


@claim
def a_leaf_with_a_gradient_that_moved_into_the_graph(torch):
    base = torch.zeros(3).requires_grad_()
    z = base.sin()
    with torch.no_grad():
        base[0] = 2.0
    z.sum().backward()
    return base.grad


def freed(torch, second):
    x = leaf(torch, 3)
    y = x.exp()
    w = y * 1
    z = (w * w).sum()
    z.backward(inputs=[w])
    second(torch, x, y, w, z)
    return x.grad, w.grad


FREED = {
    "for the same input": lambda torch, x, y, w, z: z.backward(inputs=[w]),
    "for a leaf": lambda torch, x, y, w, z: z.backward(inputs=[x]),
    "for one in between": lambda torch, x, y, w, z: z.backward(inputs=[y]),
    "for everything": lambda torch, x, y, w, z: z.backward(),
    "by grad": lambda torch, x, y, w, z: torch.autograd.grad(z, [w]),
    "of what was not passed": lambda torch, x, y, w, z: w.sum().backward(),
}


@pytest.mark.parametrize("how", FREED)
def test_a_second_backward_after_one_for_inputs(how):
    same(lambda torch: freed(torch, FREED[how]))


# Refusals

REFUSED = {
    "a leaf": lambda torch: leaf(torch, 3).add_(1),
    "a leaf by index": lambda torch: leaf(torch, 3).__setitem__(0, 1.0),
    "a view of a leaf": lambda torch: leaf(torch, 3)[0].add_(1),
    "a view of a view of a leaf": lambda torch: leaf(torch, 3, 3)[0][1:].mul_(2),
    "a leaf in no_grad": lambda torch: torch.no_grad()(lambda: leaf(torch, 3).add_(1))(),
    "a view of a leaf in no_grad": lambda torch: torch.no_grad()(lambda: leaf(torch, 3)[0].add_(1))(),
    "an output of unbind": lambda torch: (leaf(torch, 3, 2) * 1).unbind()[0].add_(1),
    "an output of split": lambda torch: (leaf(torch, 4) * 1).split(2)[0].mul_(2),
    "an output of chunk": lambda torch: (leaf(torch, 4) * 1).chunk(2)[1].mul_(2),
    "an output of iteration": lambda torch: next(iter(leaf(torch, 3, 2) * 1)).zero_(),
    "a view of an output of unbind": lambda torch: (leaf(torch, 3, 2) * 1).unbind()[0][1:].add_(1),
    "an output of unbind in no_grad": lambda torch: torch.no_grad()(
        lambda: (leaf(torch, 3, 2) * 1).unbind()[0].add_(1)
    )(),
    "an output of unbind of a constant": lambda torch: torch.ones(3, 2).unbind()[0].add_(1),
    "an output of split of a constant by a variable": lambda torch: torch.ones(4).split(2)[0].mul_(leaf(torch, 2)),
    "a base of unbind": lambda torch: unbound_base(torch),
    "a view made in no_grad": lambda torch: no_grad_view(torch, lambda view, w: view.add_(1)),
    "a view made in no_grad by a variable": lambda torch: no_grad_view(torch, lambda view, w: view.mul_(w)),
    "a view made in no_grad of a constant": lambda torch: no_grad_view(torch, lambda view, w: view.add_(1), False),
    "a view made in no_grad of a constant by a variable": lambda torch: no_grad_view(
        torch, lambda view, w: view.mul_(w), False
    ),
    "an integer tensor by a float": lambda torch: torch.ones(2, dtype=torch.int64).add_(0.5),
    "an integer tensor divided": lambda torch: torch.ones(2, dtype=torch.int64).div_(2),
    "a float tensor by a complex one": lambda torch: torch.ones(2).mul_(torch.ones(2, dtype=torch.complex64)),
    "a float32 tensor by a float64 one": lambda torch: torch.ones(2).mul_(torch.full((2,), 3.0, dtype=torch.float64)),
    "a tensor that would grow": lambda torch: torch.ones(1, 3).add_(torch.ones(2, 3)),
    "an expanded tensor": lambda torch: torch.ones(1).expand(3).add_(1),
    "an expanded dimension of extent one": lambda torch: torch.ones(3, 1).expand(3, 1).add_(1),
    "an element of an expanded tensor": lambda torch: torch.ones(1).expand(3)[1].add_(1),
    "an element of an expanded tensor by index": lambda torch: torch.ones(1).expand(3).__setitem__(1, 5.0),
    "an expanded tensor filled": lambda torch: torch.ones(1).expand(3).fill_(2),
    "an expanded tensor zeroed": lambda torch: torch.ones(1).expand(3).zero_(),
    "an expanded tensor copied into": lambda torch: torch.ones(1).expand(3).copy_(torch.ones(3)),
    "an overlapping as_strided filled": lambda torch: torch.ones(4).as_strided((2, 2), (1, 1)).fill_(3),
    "unfold without overlap": lambda torch: torch.arange(6.0).unfold(0, 3, 3).mul_(2),
    "partly overlapping operand": lambda torch: shifted(torch),
    "the same memory in another order": lambda torch: square(torch),
    "itself": lambda torch: itself(torch),
    "a leaf through data": lambda torch: leaf(torch, 3).data.add_(1),
    "a leaf through detach": lambda torch: leaf(torch, 3).detach().add_(1),
    "a leaf that is detached in place": lambda torch: leaf(torch, 3).detach_(),
    "a view that is detached in place": lambda torch: (leaf(torch, 3) * 1)[0].detach_(),
    "a result that is detached in place": lambda torch: (leaf(torch, 3) * 1).detach_(),
    "a view of a constant that is told to require grad": lambda torch: torch.ones(3)[0].requires_grad_(),
    "a base with a view that was told to require grad": lambda torch: view_requires(torch),
}


def unbound_base(torch):
    x = leaf(torch, 3, 2)
    y = x * 1
    first = y.unbind()[0]
    y.mul_(2)
    first.sum().backward()
    return y, first, x.grad


def no_grad_view(torch, change, variable=True):
    base = leaf(torch, 4) * 1 if variable else torch.ones(4)
    with torch.no_grad():
        view = base[:2]
    change(view, leaf(torch, 2))
    return base, view


def shifted(torch):
    x = torch.arange(4.0)
    x[1:].add_(x[:-1])
    return x


def square(torch):
    x = torch.arange(4.0).reshape(2, 2)
    x.add_(x.t())
    return x


def itself(torch):
    x = torch.arange(4.0)
    x.add_(x)
    x[1:].mul_(x[1:])
    return x


def view_requires(torch):
    base = torch.ones(3)
    view = base[1:]
    view.requires_grad_()
    base.add_(1)
    return base, view


@pytest.mark.parametrize("what", REFUSED)
def test_a_write_into(what):
    same(REFUSED[what])


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)


def test_resizing_is_a_write_unless_it_changes_nothing() -> None:
    def attempt(torch):
        weight, x, y = torch.ones(3, requires_grad=True), torch.ones(3), torch.ones(2)
        x.resize_(3)
        loss = (weight * x).sum()
        y.resize_(1, 2)
        y.resize_as_(x)
        y.resize_(3)
        x.resize_(2)
        return x._version, y._version, raises(loss.backward)

    same(attempt)
