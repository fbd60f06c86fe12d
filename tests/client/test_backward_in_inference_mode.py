"""Backward in inference mode, and leaves made there, under torch and gradwire."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.side_by_side import Claims, name_of, raises, same

import gradwire
from gradwire._core.context.modes import MODES

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch):
    return torch.tensor([1.0, -2.0, 3.0], requires_grad=True)


def inference_leaf(torch):
    with torch.inference_mode():
        return leaf(torch)


def seen(gradient):
    return gradient, gradient.is_inference()


@claim
def leaves_receive_inference_tensors(torch):
    x, y = leaf(torch), leaf(torch)
    z = (x * x).sum() + y.sum()
    with torch.inference_mode():
        z.backward()
    return seen(x.grad), seen(y.grad), (x.grad * 2).is_inference()


@claim
def results_of_grad_are_inference_tensors(torch):
    x, unused = leaf(torch), leaf(torch)
    y = (x * x).sum()
    with torch.inference_mode():
        found = torch.autograd.grad(y, [x, unused], materialize_grads=True)
    return [seen(g) for g in found], raises(lambda: leaf(torch) * found[0])


@claim
def retained_gradients_are_inference_tensors(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    with torch.inference_mode():
        torch.autograd.backward(y, torch.ones(3), retain_graph=True)
    inside = y.grad
    torch.autograd.backward(y, torch.ones(3))
    return seen(inside), y.grad.is_inference()


@claim
def a_gradient_that_is_there_stays_what_it_is(torch):
    x = leaf(torch)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    before = x.grad
    with torch.inference_mode():
        y.backward(retain_graph=True)
    again = seen(before), x.grad is before
    x.grad = None
    y.backward()
    return again, seen(x.grad)


@claim
def an_inference_gradient_is_added_to_inside_alone(torch):
    x = leaf(torch)
    y = (x * x).sum()
    with torch.inference_mode():
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
    inside = seen(x.grad.clone())
    outside = raises(lambda: y.backward(retain_graph=True))
    x.grad = None
    y.backward()
    return inside, outside, seen(x.grad)


@claim
def an_inference_tensor_assigned_to_grad_is_not_added_to(torch):
    x = leaf(torch)
    with torch.inference_mode():
        ones = torch.ones(3)
    x.grad = ones
    return x.grad.is_inference(), raises(lambda: (x * x).sum().backward())


@claim
def nothing_is_recorded_with_create_graph(torch):
    x, y = leaf(torch), leaf(torch)
    z = (x.exp() * y).sum()
    with torch.inference_mode():
        (found,) = torch.autograd.grad(z, [x], create_graph=True)
        z.backward(create_graph=True)
        first = x.grad
        z.backward(create_graph=True)
    return seen(found), seen(first), seen(x.grad), x.grad is first


@claim
def hooks_and_functions_are_called_in_inference_mode(torch):
    log = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            log.append(["backward", g.is_inference(), torch.is_inference_mode_enabled(), torch.is_grad_enabled()])
            return g * 2

    for create_graph in (False, True):
        x = leaf(torch)
        x.register_hook(lambda g: log.append([g.is_inference(), torch.is_grad_enabled()]))
        x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.is_inference()))
        y = Twice.apply(x).sum()
        with torch.inference_mode():
            y.backward(create_graph=create_graph)
        log.append(seen(x.grad))
    return log


@claim
def a_gradient_that_is_handed_on_is_what_it_was(torch):
    x = leaf(torch)
    with torch.inference_mode():
        ones = torch.ones(3)
    y = x + 1
    (found,) = torch.autograd.grad(y, [x], ones, create_graph=True)
    return found.is_inference()


@claim
def a_checkpoint_cannot_be_computed_again_there(torch):

    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    x = leaf(torch)
    with torch.inference_mode():
        other = torch.ones(3)
    y = checkpoint(lambda a: a.sin(), x, use_reentrant=True)

    def backward():
        with torch.inference_mode():
            torch.autograd.backward(y, torch.ones(3))

    refused = raises(backward)
    return refused, raises(lambda: checkpoint(lambda a, b: a + b, x, other, use_reentrant=False))


@claim
def nothing_is_detached_in_inference_mode(torch):
    x = leaf(torch) * 2
    with torch.inference_mode():
        x.detach_()
        x[1:].detach_()
    t = inference_leaf(torch).detach_()
    return x.requires_grad, t.requires_grad


# Leaves made in inference mode


@claim
def operations_on_such_leaves_alone_are_not_recorded(torch):
    t = inference_leaf(torch)
    made = [
        t * t, t + t, t.sin(), t**2, 2 / t, t.exp(), torch.cat([t, t]), t.softmax(0),
        torch.where(t > 0, t, t), torch.lerp(t, t, 0.5), t[1:], t.view(-1), t.detach(),
    ]  # fmt: skip
    return [(m, m.is_inference()) for m in made]


@claim
def operations_on_others_too_are(torch):
    t, ones = inference_leaf(torch), torch.ones(3)
    made = [
        t + 1, t - 1, t * 2, t / 2, t + ones, torch.stack([t, ones]), t[torch.tensor([0])],
        torch.where(ones > 0, t, t), torch.where(t > 0, t, 0.5),
    ]  # fmt: skip
    sum(m.sum() for m in made).backward()
    return made, seen(t.grad), (1 - t).requires_grad


@claim
def a_clone_and_a_cast_have_a_history(torch):
    t = inference_leaf(torch)
    (t.clone().sum() + t.double().sum()).backward()
    return seen(t.grad)


@claim
def they_are_not_saved(torch):
    t = inference_leaf(torch)
    return raises(lambda: t * torch.ones(3)), raises(lambda: t * leaf(torch)), (t + leaf(torch))


@claim
def in_inference_mode_nothing_is_recorded(torch):
    t = inference_leaf(torch)
    with torch.inference_mode():
        y = t * t
        z = (t * 2).sum()
        return y, y.is_inference(), raises(z.backward)


@claim
def what_is_made_with_gradients_enabled_inside_is_one(torch):
    with torch.inference_mode(), torch.enable_grad():
        made = [torch.ones(2), torch.tensor([1.0]), torch.ones(2) * 2]
    return [m.is_inference() for m in made]


@claim
def a_checkpoint_inside_records_nothing(torch):
    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    x = torch.ones(2).requires_grad_()
    with torch.inference_mode(), torch.enable_grad():
        y = checkpoint(lambda a, b: (a * b).sin(), x, x, use_reentrant=False)
    return y, y.is_inference(), y.requires_grad, y.grad_fn


@pytest.mark.parametrize("claimed", claim, ids=name_of)
def test_claim(claimed):
    same(claimed)


def test_other_operations_go_the_long_way_only_once_there_is_such_a_leaf(session):
    gradwire.ones(2)
    assert MODES.key >= 0
    inference_leaf(gradwire)
    assert MODES.key < 0
