"""Views and in-place writes: changed history, node names and gradients, under torch and gradwire."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, history, leaf, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


# A write into a view reaches the base


@claim
def a_write_into_a_view_gives_the_base_a_copy_slices_node(torch):
    x = leaf(torch, 3, 4)
    y = x * 2
    view = y[1]
    view.mul_(3)
    (y * y).sum().backward()
    return y, view, x.grad, history(y), history(view)


@claim
def a_number_written_by_index_cuts_the_gradient_there(torch):
    x = leaf(torch, 3, 4)
    y = x * 2
    y[1, 2] = 10.0
    y[:, 0] = -1.0
    y.pow(2).sum().backward()
    return y, x.grad, history(y)


@claim
def a_tensor_written_by_index_receives_a_gradient(torch):
    x, w = leaf(torch, 3, 4), leaf(torch, 4)
    y = x * 2
    y[1] = w * w
    (y * y).sum().backward()
    return y, x.grad, w.grad, history(y)


@claim
def a_broadcast_value_written_by_index_receives_the_sum(torch):
    x, w = leaf(torch, 3, 4), leaf(torch, 1)
    y = x * 2
    y[1:] = w
    (y * y).sum().backward()
    return x.grad, w.grad


@claim
def a_differentiable_write_makes_a_constant_require_grad(torch):
    base = torch.zeros(2, 3)
    view = base[0]
    w = leaf(torch, 3)
    view.copy_(w)
    before = (base.requires_grad, view.requires_grad, base.is_leaf)
    (base * 2).sum().backward()
    return before, base, view, w.grad, history(base), history(view)


@claim
def a_sibling_of_a_written_view_of_a_constant_requires_grad_too(torch):
    base = torch.zeros(4)
    first, second = base[:2], base[2:]
    w = leaf(torch, 2)
    first.mul_(0).add_(w)
    second.requires_grad
    (second * 3 + first).sum().backward()
    return base, first, second, w.grad, history(second)


@claim
def the_base_of_a_view_of_a_view_is_the_root(torch):
    x = leaf(torch, 2, 3, 4) * 1
    view = x[0].t()[1:]
    return view._base is x, view._is_view(), x._is_view(), x._base is None, view


@claim
def a_write_into_a_view_of_a_view(torch):
    x = leaf(torch, 3, 4)
    y = x * 1
    inner = y.t()[1:3]
    inner.mul_(y.detach().t()[1:3].clone())
    (y.pow(3)).sum().backward()
    return y, inner, x.grad, history(y), history(inner)


@claim
def several_writes_through_several_views(torch):
    x = leaf(torch, 4, 4)
    y = x * 1
    y[0].mul_(2)
    y[:, 1].add_(y[:, 2].clone())
    y.diagonal().mul_(3)
    y.view(2, 8)[1, 2:6].zero_()
    y.t()[3].exp_()
    y.sum().backward()
    return y, x.grad, history(y)


@claim
def a_write_through_transposed_memory(torch):
    x = leaf(torch, 3, 4)
    y = (x * 1).t()
    z = y * 2
    z[1:, :2].mul_(5)
    (z * z).sum().backward()
    return z, x.grad, history(z)


@claim
def a_write_through_a_permuted_base_with_its_own_strides(torch):
    x = leaf(torch, 2, 3, 4)
    y = x.permute(2, 0, 1).exp()
    y[:, 1].mul_(3)
    y[1].neg_()
    (y * y).sum().backward()
    return y, x.grad


@claim
def in_place_ops_on_results_change_their_name_only(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.add_(1)
    y.mul_(y.detach().clone())
    y.sigmoid_()
    y.sum().backward()
    return y, x.grad, history(y)


# A write into the base reaches its views


@claim
def a_view_of_a_changed_base_gets_an_as_strided_node(torch):
    x = leaf(torch, 3, 4)
    y = x * 2
    row, column = y[1], y[:, 2]
    y.mul_(y.detach().clone())
    result = (row * row).sum() + column.sum()
    result.backward()
    return row, column, x.grad, history(row)


@claim
def a_view_that_asked_before_and_after(torch):
    x = leaf(torch, 4)
    y = x * 2
    view = y[1:]
    names = [view.grad_fn.name()]
    y.add_(1)
    names.append(view.grad_fn.name())
    view.mul_(2)
    names.append(view.grad_fn.name())
    names.append(y.grad_fn.name())
    y.mul_(3)
    names.append(view.grad_fn.name())
    view.sum().backward()
    return names, view, x.grad, view._version, y._version


@claim
def views_of_views_of_a_changed_base(torch):
    x = leaf(torch, 3, 4)
    y = x * 1
    middle = y[1:]
    inner = middle.t()[2]
    y.mul_(2)
    (inner * inner).sum().backward()
    return inner, middle, x.grad, history(inner)


@claim
def a_detached_view_is_no_part_of_history(torch):
    x = leaf(torch, 3)
    y = x * 2
    cut = y.detach()
    y.mul_(2)
    return cut, cut._version == y._version, cut._is_view(), history(y)


@claim
def an_unneeded_write_goes_through_detach(torch):
    x = leaf(torch, 3)
    y = x + 2
    y.detach().zero_()
    y.sum().backward()
    return y, x.grad, history(y)


@claim
def a_hook_free_leaf_view_outside_of_recording(torch):
    x = leaf(torch, 3, 2)
    view = x[0]
    with torch.no_grad():
        x.add_(1)
        x[1].zero_()
    view.sum().backward()
    return x, view, x.grad, x._version


# Versions


@claim
def views_share_a_version(torch):
    x = torch.zeros(3, 3)
    view = x[0][1:]
    counted = [x._version, view._version]
    view.add_(1)
    x.mul_(2)
    x[1] = 5
    counted += [x._version, view._version, x.detach()._version, x.data._version]
    return counted


# Higher orders


@claim
def double_backward_through_copy_slices(torch):
    x, w = leaf(torch, 3, 3), leaf(torch, 3)
    y = x * x
    y[1].mul_(w)
    y.t()[2].copy_(w * w)
    first = torch.autograd.grad(y.pow(2).sum(), (x, w), create_graph=True)
    second = torch.autograd.grad(sum(g.pow(2).sum() for g in first), (x, w))
    return [g.detach() for g in first], second


@claim
def double_backward_through_a_regenerated_view(torch):
    x = leaf(torch, 3, 3)
    y = x * x
    view = y[:, 1]
    y.mul_(x)
    first = torch.autograd.grad(view.pow(2).sum(), x, create_graph=True)[0]
    return first.detach(), torch.autograd.grad(first.sum(), x)[0]


# Writing what one reads


@claim
def an_in_place_op_by_its_own_operand(torch):
    x = leaf(torch, 3)
    y = x * 1
    y += y.clone()
    y -= x
    y /= 2
    y **= 2
    y.sum().backward()
    return y, x.grad


@claim
def in_place_operators_return_the_same_object(torch):
    x = torch.ones(3)
    same_object = x
    x += 1
    x *= 3
    x[1:] -= 2
    return x is same_object, x, x.add_(1) is x, x._version


@claim
def conditions_written_by_mask(torch):
    x, w = leaf(torch, 3, 4), leaf(torch, 1)
    y = x * 1
    y[y > 2] = 0.0
    y.masked_fill_(y < -3, 9.0)
    y[:, [0, 2]] = w.expand(3, 2) * 2
    y.index_fill_(0, torch.tensor([1]), 4.0)
    (y * y).sum().backward()
    return y, x.grad, w.grad, history(y)


@claim
def a_hook_stays_with_the_operation_before_a_write_and_retain_grad_moves(torch):
    x = leaf(torch, 3)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.mul_(5)
    y.register_hook(lambda g: seen.append((g * 10).tolist()))
    (y * y).sum().backward()
    return seen, y.grad, x.grad


@claim
def a_hook_on_a_view_of_a_base_written_later(torch):
    x = leaf(torch, 3)
    y = x * 2
    view = y[1:]
    seen = []
    view.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(5)
    view.sum().backward()
    return seen, x.grad


@claim
def data_can_be_replaced(torch):
    x = leaf(torch, 3)
    x.data = torch.arange(4.0)
    (x * x).sum().backward()
    return x, x.grad


@claim
def set_data_of_another_kind(torch):
    x = leaf(torch, 3)
    return raises(lambda: setattr(x, "data", torch.ones(3, dtype=torch.int64))), raises(lambda: setattr(x, "data", 1))


WRITTEN = {
    "a view of it all": lambda torch, x: (x * 0.1 - 0.3).view(12).relu_(),
    "a view that keeps its result": lambda torch, x: (x * 0.1).view(12).exp_(),
    "a row": lambda torch, x: (y := x * 0.1, y[0].tanh_())[0],
    "rows one after the other": lambda torch, x: (y := x * 0.1, y[0].tanh_(), y[:, 1].sigmoid_())[0],
    "an instance norm": lambda torch, x: torch.nn.functional.relu_(torch.nn.functional.instance_norm(x[None])),
    "a normalization of a batch": lambda torch, x: torch.relu_(
        torch.nn.functional.batch_norm(x[:, :, None], None, None, training=True)
    ),
}


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("again", [False, True])
def test_second_derivatives_of_results_kept_by_a_write_into(how, again):
    def differentiated_twice(torch):
        x = (torch.arange(12.0, dtype=torch.float64).sin() * 2).reshape(2, 6).detach().requires_grad_()
        y = WRITTEN[how](torch, x)
        g = torch.autograd.grad((y**3).sum(), [x], create_graph=True)[0]
        found = torch.autograd.grad((g**2).sum(), [x], retain_graph=again)[0]
        return (found * 1, torch.autograd.grad((g**2).sum(), [x])[0] * 1) if again else found * 1

    same(differentiated_twice)


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
