"""Which operations return views, of which kind, and what these allow, under torch and gradwire."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, history, leaf, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


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


# Parts that autograd takes for tensors of their own

UNSAFE = {
    "unsafe_split": lambda torch, x: torch.unsafe_split(x, 2),
    "unsafe_split of a rest": lambda torch, x: x.unsafe_split(4, 0),
    "unsafe_split_with_sizes": lambda torch, x: x.unsafe_split_with_sizes([1, 5]),
    "unsafe_chunk": lambda torch, x: torch.unsafe_chunk(x, 3),
}


@pytest.mark.parametrize("how", UNSAFE)
@pytest.mark.parametrize("again", range(3))
def test_parts_of_an_unsafe_split_are_changed_in_place(how, again):
    def changed(torch):
        x = leaf(torch, 6)
        y = x * 2
        first, *_, last = UNSAFE[how](torch, y)
        facts = [(p._base is None, p._is_view(), p._version, history(p)) for p in (first, last)]
        first.mul_(3)
        last[0] = 7.0
        version = y._version
        (first.sum() + (last * last).sum() + y.sum()).backward()
        return facts, version, first, last, y, x.grad

    same(changed)


@claim
def parts_of_an_unsafe_split_of_a_leaf(torch):
    x = leaf(torch, 6)
    first, last = x.unsafe_split(3)
    first.add_(1)
    (first * last).sum().backward()
    return x, x.grad


@claim
def an_unsafe_split_without_gradients(torch):
    x = torch.arange(6.0)
    first, last = x.unsafe_chunk(2)
    first.copy_(last)
    return x, [list(p.shape) for p in torch.unsafe_chunk(torch.zeros(0, 2), 3)]


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
