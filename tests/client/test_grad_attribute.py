"""``Tensor.grad``: accumulation, layout, assignment, warnings and ``grad_dtype``, under torch and gradwire."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *values, dtype=None):
    return torch.tensor(values or (1.0, -2.0, 3.0), dtype=dtype, requires_grad=True)


# Accumulation


@claim
def accumulation_is_in_place(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    first = x.grad
    version = first._version
    (x * 3).sum().backward()
    return first is x.grad, first, first._version - version


@claim
def accumulation_under_create_graph_is_out_of_place(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    first = x.grad
    (x**3).sum().backward(create_graph=True)
    return first is x.grad, first, x.grad.detach(), x.grad.requires_grad


@claim
def a_grad_that_is_reset_between(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    kept = x.grad
    x.grad = None
    (x * 5).sum().backward()
    return kept, x.grad


@claim
def a_grad_zeroed_in_place(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    x.grad.zero_()
    (x * x).sum().backward()
    return x.grad


@claim
def a_grad_changed_in_place_counts(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    x.grad.mul_(-1)
    x.grad[0] = 100.0
    x.grad += 1
    (x * x).sum().backward()
    return x.grad


@claim
def grad_is_the_same_object_each_time(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    return x.grad is x.grad, x.grad.is_leaf, x.grad.requires_grad, x.grad.grad_fn is None


@claim
def a_leaf_used_as_its_own_gradient(torch):
    x = leaf(torch)
    (x + 0).backward(x.detach())
    x.grad.add_(1)
    return x, x.grad


@claim
def two_leaves_that_receive_one_gradient_do_not_share_it(torch):
    x, w = leaf(torch), leaf(torch)
    (x + w).sum().backward()
    x.grad.mul_(5)
    return x.grad, w.grad


@claim
def a_gradient_that_is_a_view_of_another_does_not_share(torch):
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    v = torch.arange(6.0).reshape(2, 3)
    (x + w.t()).backward(v)
    x.grad.zero_()
    return x.grad, w.grad, v


# Layout: strides of grad


@claim
def grad_of_a_dense_leaf_keeps_its_strides(torch):
    x = torch.arange(6.0).reshape(2, 3).t().detach().requires_grad_()
    (x * x).sum().backward()
    return x.stride(), x.grad


@claim
def grad_of_a_permuted_leaf(torch):
    x = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1).detach().requires_grad_()
    (x * torch.ones(4, 2, 3)).sum().backward()
    return x.stride(), x.grad


@claim
def grad_of_a_leaf_with_gaps_is_contiguous(torch):
    x = torch.arange(12.0).reshape(3, 4)[:, ::2].detach().requires_grad_()
    (x * x).sum().backward()
    return x.stride(), x.grad


@claim
def grad_of_an_expanded_leaf_is_contiguous(torch):
    x = torch.ones(3, 1).expand(3, 4).detach().requires_grad_()
    (x * 2).sum().backward()
    return x.stride(), x.grad


@claim
def grad_of_a_contiguous_leaf_from_a_transposed_gradient(torch):
    x = torch.arange(6.0).reshape(2, 3).detach().requires_grad_()
    x.t().backward(torch.arange(6.0).reshape(3, 2))
    return x.grad


@claim
def grad_of_a_contiguous_leaf_from_an_expanded_gradient(torch):
    x = torch.ones(2, 3, requires_grad=True)
    x.sum().backward()
    x.grad[0, 0] = 5.0
    return x.grad


@claim
def what_grad_returns_can_be_viewed_as_its_input_can(torch):
    x = torch.ones(2, 3, requires_grad=True)
    (g,) = torch.autograd.grad(x * x, x, torch.arange(6.0).reshape(3, 2).t())
    return g.reshape(-1), g.sum(0)


@claim
def grad_under_create_graph_has_strides(torch):
    x = torch.arange(6.0).reshape(2, 3).t().detach().requires_grad_()
    (x**3).sum().backward(create_graph=True)
    return x.grad.stride(), x.grad.detach()


@claim
def accumulating_keeps_the_strides_of_the_first(torch):
    x = torch.arange(6.0).reshape(2, 3).t().detach().requires_grad_()
    (x * x).sum().backward()
    (x * torch.ones(3, 2)).sum().backward()
    return x.grad


# Assignment


def assigned(make, dtype=None):
    def attempt(torch):
        x = leaf(torch, dtype=dtype and getattr(torch, dtype))
        value = make(torch)
        x.grad = value
        return x.grad, x.grad is value

    return attempt


ASSIGNED = {
    "a tensor": assigned(lambda t: t.ones(3)),
    "None": assigned(lambda t: None),
    "a number": assigned(lambda t: 1.0),
    "a list": assigned(lambda t: [1.0, 2.0, 3.0]),
    "another shape": assigned(lambda t: t.ones(2)),
    "a shape that broadcasts": assigned(lambda t: t.ones(1)),
    "another order of dimensions": assigned(lambda t: t.ones(3, 1)),
    "another dtype": assigned(lambda t: t.ones(3, dtype=t.float64)),
    "an integer tensor": assigned(lambda t: t.ones(3, dtype=t.int64)),
    "a complex tensor": assigned(lambda t: t.ones(3, dtype=t.complex64)),
    "half for half": assigned(lambda t: t.ones(3, dtype=t.float16), "float16"),
    "double for half": assigned(lambda t: t.ones(3, dtype=t.float64), "float16"),
    "a tensor that requires grad": assigned(lambda t: t.ones(3, requires_grad=True)),
    "other strides": assigned(lambda t: t.ones(6)[::2]),
    "an expanded tensor": assigned(lambda t: t.ones(1).expand(3)),
}


@pytest.mark.parametrize("what", ASSIGNED)
def test_assigning_grad(what):
    same(ASSIGNED[what])


@claim
def an_assigned_grad_is_shared(torch):
    x, value = leaf(torch), torch.ones(3)
    x.grad = value
    (x * x).sum().backward()
    value.add_(100)
    return x.grad is value, value


@claim
def a_tensor_as_its_own_grad(torch):
    x = leaf(torch)
    return raises(lambda: setattr(x, "grad", x))


@claim
def grad_of_a_tensor_that_does_not_require_it(torch):
    x = torch.ones(3)
    x.grad = torch.ones(3)
    return x.grad, x.requires_grad


@claim
def grad_assigned_to_a_result(torch):
    x = leaf(torch)
    y = x * 2
    y.grad = torch.ones(3)
    y.sum().backward()
    return y.grad, x.grad


@claim
def a_deleted_grad(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    del x.grad
    return x.grad


@claim
def grad_swapped_between_leaves(torch):
    x, w = leaf(torch), leaf(torch)
    (x * 2 + w * 3).sum().backward()
    x.grad, w.grad = w.grad, x.grad
    return x.grad, w.grad


# Results


@claim
def grad_of_a_result_warns_and_is_none(torch):
    x = leaf(torch)
    y = x * 2
    y.sum().backward()
    return y.grad


@claim
def grad_of_a_leaf_does_not_warn(torch):
    return leaf(torch).grad, torch.ones(2).grad


@claim
def a_retained_grad(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    before = y.grad
    (y * y).sum().backward()
    return before, y.grad, y.retains_grad, x.retains_grad, x.grad


@claim
def a_retained_grad_accumulates(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    (y * 2).sum().backward()
    return y.grad


@claim
def retain_grad_of_a_leaf_changes_nothing(torch):
    x = leaf(torch)
    x.retain_grad()
    (x * x).sum().backward()
    return x.grad, x.retains_grad


@claim
def retain_grad_of_a_constant(torch):
    return raises(lambda: torch.ones(3).retain_grad())


@claim
def retain_grad_follows_an_in_place_op(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    (y * y).sum().backward()
    return y.grad, x.grad


@claim
def retain_grad_of_a_view_and_its_base(torch):
    x = leaf(torch)
    y = x * 2
    view = y[1:]
    y.retain_grad()
    view.retain_grad()
    (view * view).sum().backward()
    return y.grad, view.grad


@claim
def grad_of_a_detached_tensor_is_its_own(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    return x.detach().grad, x.data.grad


@claim
def backward_with_create_graph_warns(torch):
    x = leaf(torch)
    (x**2).sum().backward(create_graph=True)
    return x.grad.detach()


@claim
def grad_with_create_graph_does_not_warn(torch):
    x = leaf(torch)
    return torch.autograd.grad((x**2).sum(), x, create_graph=True)[0].detach()


# requires_grad


@claim
def requires_grad_as_an_attribute(torch):
    x = torch.ones(3)
    x.requires_grad = True
    y = x * 2
    return (
        x.requires_grad, raises(lambda: setattr(y, "requires_grad", False)),
        raises(lambda: setattr(y, "requires_grad", True)),
        raises(lambda: setattr(torch.ones(2, dtype=torch.int64), "requires_grad", True)),
        raises(lambda: setattr(torch.ones(2, dtype=torch.int64), "requires_grad", False)),
    )  # fmt: skip


@claim
def requires_grad_off_keeps_grad(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    x.requires_grad_(False)
    return x.grad, x.requires_grad, (x * 2).requires_grad


@claim
def a_deep_copy_of_a_leaf(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    made = copy.deepcopy(x)
    made.grad.add_(1)
    return made, made.grad, x.grad


@claim
def a_deep_copy_of_a_result(torch):
    return raises(lambda: copy.deepcopy(leaf(torch) * 2))


@claim
def a_view_of_a_leaf_has_no_grad(torch):
    x = leaf(torch)
    view = x[1:]
    (x * x).sum().backward()
    return view.is_leaf, x.grad


# grad_dtype


@claim
def grad_dtype_is_the_dtype(torch):
    x = leaf(torch)
    return x.grad_dtype, leaf(torch, dtype=torch.float64).grad_dtype, torch.ones(2, dtype=torch.float16).grad_dtype


@claim
def grad_dtype_of_what_has_no_gradient(torch):
    return (
        raises(lambda: torch.ones(2, dtype=torch.int64).grad_dtype), raises(lambda: (leaf(torch) * 2).grad_dtype),
        raises(lambda: setattr(leaf(torch), "grad_dtype", 1)),
        raises(lambda: setattr(leaf(torch), "grad_dtype", torch.int64)),
    )  # fmt: skip


@pytest.mark.parametrize("lib", [torch, gradwire], ids=["torch", "gradwire"])
def test_grad_dtype_of_a_result_cannot_be_set(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch looks at .grad before it refuses
        assert raises(lambda: setattr(leaf(lib) * 2, "grad_dtype", lib.float64)) == "RuntimeError"


@claim
def a_grad_of_a_chosen_dtype(torch):
    x = leaf(torch)
    x.grad_dtype = torch.float64
    (x * x).sum().backward()
    (x * x).sum().backward()
    return x.grad_dtype, x.grad, x


@claim
def a_grad_of_whatever_dtype_arrives(torch):
    x = leaf(torch)
    x.grad_dtype = None
    (x.double() * 2).sum().backward()
    return x.grad_dtype, x.grad


@claim
def assigning_a_grad_of_the_chosen_dtype(torch):
    x = leaf(torch)
    x.grad_dtype = torch.float64
    wrong = raises(lambda: setattr(x, "grad", torch.ones(3)))
    x.grad = torch.ones(3, dtype=torch.float64)
    return wrong, x.grad


@claim
def assigning_any_grad_where_the_dtype_is_open(torch):
    x = leaf(torch)
    x.grad_dtype = None
    x.grad = torch.ones(3, dtype=torch.bfloat16)
    return x.grad.dtype, x.grad.float()


@claim
def changing_grad_dtype_under_a_grad(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    return raises(lambda: setattr(x, "grad_dtype", torch.float64)), raises(
        lambda: setattr(x, "grad_dtype", torch.float32)
    )


@claim
def the_name_with_an_underscore_is_the_same_gradient(torch):
    x = leaf(torch)
    x._grad = torch.full((3,), 2.0)
    seen = [x.grad.clone(), x._grad is x.grad]
    (x * 3).sum().backward()
    seen.append(x._grad.clone())
    optimizer = torch.optim.SGD([x], 0.5)
    optimizer.step()
    seen += [x.detach().clone(), raises(lambda: setattr(x, "_grad", torch.ones(2)))]
    x._grad = None
    return *seen, x.grad


@claim
def the_name_with_an_underscore_warns_as_well(torch):
    y = leaf(torch) * 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return y._grad, len(caught)


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
