"""The rest of ``torch.autograd``: Function contexts, callbacks, modes, under torch and gradwire."""

from __future__ import annotations

import warnings

import pytest
from tests.side_by_side import Claims, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *values):
    return torch.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


def _two_outputs(torch, found, materialize, non_differentiable):
    class Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out, other, counts = x.clone(), x.clone(), x.long()
            ctx.mark_non_differentiable(other)
            ctx.set_materialize_grads(materialize)
            ctx._materialize_non_diff_grads = non_differentiable
            return out, other, counts, x * 2

        @staticmethod
        def backward(ctx, *gradients):
            found.append([None if g is None else g.tolist() for g in gradients])
            return gradients[0]

    return Func


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("non_differentiable", [True, False])
def test_gradients_of_outputs_without_derivative(materialize, non_differentiable) -> None:
    def gradients(torch):
        found = []
        _two_outputs(torch, found, materialize, non_differentiable).apply(leaf(torch))[0].sum().backward()
        return found

    same(gradients)


@claim
def callbacks_run_once_every_gradient_has_arrived(torch):
    order = []
    queue = torch.autograd.Variable._execution_engine.queue_callback
    x = leaf(torch)

    def last():
        order.append(["last", x.grad.tolist()])

    def first():
        order.append(["first", x.grad.tolist()])
        queue(last)

    y = x * 2
    y.register_hook(lambda g: queue(first))
    y.register_hook(lambda g: order.append("hook"))
    y.sum().backward()
    return order


@claim
def callbacks_belong_to_the_innermost_backward(torch):
    order = []
    queue = torch.autograd.Variable._execution_engine.queue_callback

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            queue(lambda: order.append("inner"))
            return g

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            queue(lambda: order.append("outer"))
            with torch.enable_grad():
                Inner.apply(g.detach().requires_grad_()).sum().backward()
            order.append("after")
            return g

    Outer.apply(leaf(torch)).sum().backward()
    return order


@claim
def a_callback_outside_of_backward_is_refused(torch):
    torch.autograd.Variable._execution_engine.queue_callback(lambda: None)


@claim
def a_pack_hook_may_not_change_its_input(torch):
    def pack(tensor):
        tensor.mul_(2)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        (leaf(torch) * 1).exp()


@claim
def a_pack_hook_may_change_a_clone(torch):
    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone().mul_(2), lambda t: t):
        (x * x).sum().backward()
    return x.grad


@claim
def saved_tensors_have_a_former_name(torch):
    class Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                (x,) = ctx.saved_variables
            assert any(issubclass(w.category, DeprecationWarning) for w in caught)
            return g * x

    x = leaf(torch)
    Func.apply(x).sum().backward()
    return x.grad


@claim
def a_result_marked_dirty_that_is_no_input_warns(torch):
    class Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            made = x * 3
            ctx.mark_dirty(made)
            return made

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(torch)
    Func.apply(x.clone()).sum().backward()
    return x.grad


@claim
def an_instance_of_a_function_is_not_called(torch):
    class Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    Func()(leaf(torch))


@claim
def an_in_place_function_is_a_function(torch):
    class Twice(torch.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(torch)
    Twice.apply(x).sum().backward()
    return x.grad, Twice(inplace=True).inplace


@claim
def multithreading_is_told_and_restored(torch):
    enabled = torch.autograd.is_multithreading_enabled
    found = [enabled()]
    with torch.autograd.set_multithreading_enabled(False):
        found.append(enabled())
        torch.autograd.set_multithreading_enabled(True)
        found.append(enabled())
    torch.autograd.set_multithreading_enabled(False)
    found.append(enabled())
    torch.autograd.set_multithreading_enabled(True)
    return [*found, enabled()]


@claim
def the_version_of_an_inference_tensor_is_not_counted(torch):
    with torch.inference_mode():
        x = torch.ones(3)
    torch.autograd.graph.increment_version(x)
    return x.is_inference()


@pytest.mark.parametrize("claim", list(claim), ids=name_of)
def test_claim(claim) -> None:
    same(claim)
