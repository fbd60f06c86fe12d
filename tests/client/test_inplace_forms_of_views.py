"""``t_``, ``transpose_``, ``unsqueeze_`` and similar: which tensors allow them, in which mode, with which gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final

import pytest
from tests.side_by_side import Claims, leaf, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()

FORMS: Final[dict[str, Callable[[Any], Any]]] = {
    "as_strided_": lambda v: v.as_strided_((1, 0), (2, 2)),
    "transpose_": lambda v: v.transpose_(0, 0),
    "t_": lambda v: v.t_(),
    "squeeze_": lambda v: v.squeeze_(0),
    "unsqueeze_": lambda v: v.unsqueeze_(0),
    "swapdims_": lambda v: v.swapdims_(0, 0),
}


def kinds(torch):
    """Views of each origin."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    return {"plain": lambda x: x.view_as(x), "one of several": lambda x: x.unbind()[0], "own": Own.apply}


@claim
def views_are_reshaped_and_written_in_the_modes_of_pytorch(torch):
    found = []
    views = kinds(torch)
    for form, change in FORMS.items():
        for kind, viewed, changed, requires in product(views, (True, False), (True, False), (True, False)):
            base = torch.ones(2, 3, requires_grad=requires).clone()
            with torch.set_grad_enabled(viewed):
                view = views[kind](base)
            with torch.set_grad_enabled(changed):
                refused = raises(lambda view=view, change=change: change(view) is None)
            written = raises(lambda view=view: view.add_(1) is None) if refused is None else "not tried"
            found.append((form, kind, viewed, changed, requires, refused, written))
    return found


@claim
def a_leaf_reshaped_with_gradients_off_stays_a_leaf_and_gets_its_gradient(torch):
    x = leaf(torch, 2, 3)
    with torch.no_grad():
        x.t_().unsqueeze_(0)
    (x * torch.arange(6.0, dtype=x.dtype).view(1, 3, 2)).sum().backward()
    return x, x.is_leaf, x.requires_grad, x.grad


@claim
def a_view_reshaped_with_gradients_off_keeps_its_history(torch):
    x = leaf(torch, 3, 3)
    y = x * 2
    view = y.view_as(y)
    weight = torch.arange(9.0, dtype=x.dtype).view(3, 3)
    with torch.no_grad():
        view.t_()
    (view * weight).sum().backward(retain_graph=True)
    first = x.grad.clone()
    view.mul_(weight)
    y.sum().backward()
    return view.detach(), view.requires_grad, first, x.grad


@claim
def a_result_reshaped_with_gradients_off_keeps_its_history(torch):
    x = leaf(torch, 3, 3)
    y = x * 2
    with torch.no_grad():
        y.unsqueeze_(0)
    y.sum().backward()
    return y.detach(), y.requires_grad, y.is_leaf, x.grad


@claim
def leaves_are_not_reshaped_with_gradients_on(torch):
    return raises(lambda: leaf(torch, 2, 3).t_())


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
