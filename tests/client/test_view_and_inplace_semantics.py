"""Views and in-place writes: history, names, gradients and refusals, each claim under torch and gradwire."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *shape):
    """A leaf without regularities."""
    count = 1
    for n in shape:
        count *= n
    return ((torch.arange(float(count)) * 7 + 3) % 11 - 4).reshape(shape).detach().requires_grad_()


def history(tensor):
    """The names of the nodes behind a tensor, level by level; places without gradient are left out."""
    names, level = [], [] if tensor.grad_fn is None else [tensor.grad_fn]
    while level:
        names.append([n.name() for n in level])
        level = [m for n in level for m, _ in n.next_functions if m is not None]
    return names


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


# Multi-view outputs


@claim
def outputs_of_split_share_a_node(torch):
    parts = (leaf(torch, 5) * 1).split(2)
    return parts, [p.output_nr for p in parts], [p._base is parts[0]._base for p in parts]


@claim
def a_base_changed_after_unbind_reaches_its_outputs(torch):
    x = leaf(torch, 2, 3)
    y = x * 1
    first, second = y.unbind()
    y.mul_(3)
    (first * second).sum().backward()
    return first, second, x.grad, history(first)


@claim
def an_output_of_unbind_of_a_constant_can_be_written(torch):
    x = torch.ones(2, 3)
    first, _ = x.unbind()
    first.mul_(5)
    return x, first


@claim
def only_one_output_used(torch):
    x = leaf(torch, 6)
    (x * 1).chunk(3)[1].sum().backward()
    return x.grad


# Views under modes


@claim
def a_view_made_in_no_grad_requires_none(torch):
    x = leaf(torch, 3)
    with torch.no_grad():
        view = x[1:]
    return view, view._is_view(), view._base is x


@claim
def a_view_made_in_no_grad_of_a_changed_base(torch):
    x = leaf(torch, 3)
    y = x * 1
    with torch.no_grad():
        view = y[1:]
    y.mul_(2)
    return view, view.grad_fn is None, view.requires_grad


@claim
def a_view_that_cannot_take_part_in_history_is_printed(torch):
    x = leaf(torch, 3)
    with torch.no_grad():
        view = x[1:]
        view.add_(1)
    return repr(view), raises(lambda: view.grad_fn), raises(lambda: view * 2), view.requires_grad


@claim
def a_write_in_no_grad_keeps_history(torch):
    x = leaf(torch, 3)
    y = x * 2
    with torch.no_grad():
        y.mul_(100)
        y[0] = 7
    y.sum().backward()
    return y, x.grad, history(y)


# What views look like


@claim
def which_ops_give_views(torch):
    x = leaf(torch, 2, 3, 4) * 1
    made = {
        "view": x.view(6, 4), "reshape": x.reshape(4, 6), "reshape copy": x.transpose(0, 1).reshape(-1),
        "flatten": x.flatten(), "unflatten": x.unflatten(2, (2, 2)), "t": x[0].t(), "transpose": x.transpose(0, 2),
        "permute": x.permute(2, 0, 1), "movedim": x.movedim(0, 2), "select": x.select(1, 0),
        "narrow": x.narrow(2, 1, 2), "index int": x[1], "index slice": x[:, 1:], "index list": x[:, [0, 1]],
        "index none": x[None],
        "ellipsis": x[..., 0], "expand": x[:, :1].expand(2, 3, 4), "expand_as": x[:1].expand_as(x),
        "squeeze": x[:1].squeeze(0), "unsqueeze": x.unsqueeze(1), "diagonal": x.diagonal(0, 0, 1),
        "unfold": x.unfold(2, 2, 1), "as_strided": x.as_strided((2, 2), (1, 2), 1), "T": x[0].T, "mT": x.mT,
        "detach": x.detach(), "contiguous": x.contiguous(), "contiguous copy": x.mT.contiguous(),
        "clone": x.clone(), "view_as": x.view_as(x), "swapaxes": x.swapaxes(0, 1),
        "broadcast_to": torch.broadcast_to(x[0], (2, 3, 4)), "repeat": x.repeat(1, 1, 1), "to": x.to(torch.float32),
        "real": x.real, "ravel": x.ravel(), "adjoint": x.adjoint(), "narrow_copy": x[:, :1].clone(),
    }  # fmt: skip
    return {
        name: (v, v._is_view(), v._base is x, v is x, None if v.grad_fn is None else v.grad_fn.name())
        for name, v in made.items()
    }


@claim
def multi_view_ops(torch):
    x = leaf(torch, 4, 6) * 1
    made = {
        "split": x.split(2), "split sections": x.split((1, 3)), "chunk": x.chunk(3, 1), "unbind": x.unbind(1),
        "tensor_split": x.tensor_split(3), "hsplit": x.hsplit(2), "vsplit": x.vsplit((1, 2)),
    }  # fmt: skip
    return {name: [(p, p._base is x, p.grad_fn.name()) for p in parts] for name, parts in made.items()}


@claim
def multi_view_ops_refuse_writes(torch):
    x = leaf(torch, 4, 6)
    attempts = {
        "tensor_split": lambda: (x * 1).tensor_split(2)[0].add_(1),
        "hsplit": lambda: (x * 1).hsplit(2)[0].add_(1),
        "vsplit": lambda: (x * 1).vsplit(2)[1].add_(1),
        "split": lambda: (x * 1).split((1, 3))[0].add_(1),
    }
    return {name: raises(attempt) for name, attempt in attempts.items()}


# Expanded tensors


@claim
def a_gradient_flows_back_through_expand(torch):
    x = leaf(torch, 3, 1)
    y = x.expand(2, 3, 4)
    (y * torch.arange(24.0).reshape(2, 3, 4)).sum().backward()
    return y, x.grad


@claim
def a_single_element_of_an_expanded_result_written(torch):
    x = leaf(torch, 1)
    y = (x * 1).expand(3)
    y[1] = 5.0
    return y


@claim
def an_expanded_view_of_a_changed_base(torch):
    x = leaf(torch, 3, 1)
    y = x * 1
    wide = y.expand(3, 2)
    y.mul_(2)
    (wide * torch.arange(6.0).reshape(3, 2)).sum().backward()
    return wide, x.grad, history(wide)


# Complex bases with real views


@claim
def a_write_into_the_real_part(torch):
    x = leaf(torch, 3)
    z = torch.complex(x, x * 2)
    z.real.mul_(3)
    (z * z.conj()).real.sum().backward()
    return z, x.grad, history(z)


@claim
def a_write_into_the_imaginary_part(torch):
    x, w = leaf(torch, 3), leaf(torch, 2)
    z = torch.complex(x, x * 2)
    z.imag[1:] = w * w
    torch.view_as_real(z).pow(2).sum().backward()
    return z, x.grad, w.grad


@claim
def a_real_view_of_a_changed_complex_base(torch):
    x = leaf(torch, 3)
    z = torch.complex(x, x * 2)
    parts = torch.view_as_real(z)
    real, imag = z.real, z.imag
    z.mul_(2 - 1j)
    (parts.pow(2).sum() + (real * torch.tensor([1.0, 2.0, 3.0])).sum() + imag[1]).backward()
    return parts, real, imag, x.grad


@claim
def a_real_view_of_a_part_of_a_changed_complex_base(torch):
    x = leaf(torch, 2, 3)
    z = torch.complex(x, x * 2)
    part = z[1, 1:].imag
    z.mul_(1j)
    (part * part).sum().backward()
    return part, x.grad


@claim
def a_complex_view_of_a_changed_real_base(torch):
    x = leaf(torch, 3, 2)
    y = x * 1
    z = torch.view_as_complex(y)
    y.mul_(3)
    (z * z).abs().sum().backward()
    return z, x.grad


@claim
def a_write_into_a_complex_view_of_a_real_base(torch):
    x = leaf(torch, 3, 2)
    y = x * 1
    z = torch.view_as_complex(y)
    z.mul_(1 + 2j)
    y[0].mul_(2)
    y.pow(2).sum().backward()
    return y, z, x.grad


@claim
def a_real_view_of_a_constant_complex_base(torch):
    z = torch.zeros(3, dtype=torch.complex64)
    w = leaf(torch, 3)
    z.real.copy_(w)
    (z * z).sum().real.backward()
    return z, w.grad


@claim
def a_view_through_both_kinds(torch):
    x = leaf(torch, 2, 2, 2)
    y = x * 1
    z = torch.view_as_complex(y)[1]
    again = torch.view_as_real(z)[:, 1]
    y.mul_(2)
    z.mul_(1j)
    again.add_(5)
    (y * torch.arange(8.0).reshape(2, 2, 2)).sum().backward()
    return y, z, again, x.grad


@claim
def double_backward_through_a_written_real_view(torch):
    x = leaf(torch, 3)
    z = torch.complex(x, x * 2)
    z.real.mul_(x)
    first = torch.autograd.grad(torch.view_as_real(z).pow(3).sum(), x, create_graph=True)[0]
    return first.detach(), torch.autograd.grad(first.sum(), x)[0]


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


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
