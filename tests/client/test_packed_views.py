"""What saved-tensor hooks pack of views: what an in-place op on a view saves, and a view without history."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.side_by_side import Claims, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


@claim
def hooks_pack_what_an_in_place_op_on_a_view_keeps(torch):
    seen = []

    def pack(x):
        seen.append(("pack", x.detach().clone()))
        return x.detach().clone()

    def unpack(x):
        seen.append(("unpack", tuple(x.shape)))
        return x

    x = torch.arange(1.0, 7.0).requires_grad_()
    found = []
    for name in ("tanh_", "exp_", "sigmoid_", "sqrt_"):
        h = x * 0.3
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            view = h[1:4]
            getattr(view, name)()
        view.add_(1.0)  # what was kept is packed
        (first,) = torch.autograd.grad((h * h).sum(), [x], create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), [x])
        found.append([first, second])
    return found, seen


@claim
def a_view_of_a_leaf_that_no_history_leads_to_is_unpacked_as_a_leaf(torch):
    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    leaf = torch.ones(2, 3).requires_grad_()
    with torch.inference_mode():
        view = leaf.t()
    found = []

    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            found.append([x.requires_grad, x.is_leaf])
            return g * 2 * x

    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        results = Squared.apply(view), checkpoint(lambda a: a.cumsum(0).sin(), view, use_reentrant=True)
    for each in results:
        each.sum().backward()
    return found, view.requires_grad, view.grad is None, leaf.grad is None


@pytest.mark.parametrize("claimed", claim.all, ids=name_of)
def test_claim(claimed):
    same(claimed)
