"""An operand without a derivative that requires grad is refused, as in PyTorch."""

from __future__ import annotations

from importlib import import_module
from math import prod

import pytest
from tests.side_by_side import Claims, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()

USES = {
    "binary_cross_entropy": lambda F, x, c, w, at: F.binary_cross_entropy(x, c, w),
    "with_logits": lambda F, x, c, w, at: F.binary_cross_entropy_with_logits(x, c, w),
    "pos_weight": lambda F, x, c, w, at: F.binary_cross_entropy_with_logits(x, c, pos_weight=w),
    "cross_entropy": lambda F, x, c, w, at: F.cross_entropy(x, at, w[0]),
    "nll_loss": lambda F, x, c, w, at: F.nll_loss(x, at, w[0]),
    "multi_margin_loss": lambda F, x, c, w, at: F.multi_margin_loss(x, at, weight=w[0]),
    "soft_margin_loss": lambda F, x, c, w, at: F.soft_margin_loss(x, w),
    "running mean": lambda F, x, c, w, at: F.batch_norm(x, w[0], c[0]),
    "running variance": lambda F, x, c, w, at: F.batch_norm(x, c[0], w[0], training=True),
    "of instances": lambda F, x, c, w, at: F.instance_norm(x[None], w[:, 0], c[:, 0], use_input_stats=False),
}


@claim
def it_is_refused_where_history_is_recorded(torch):
    F = import_module(f"{torch.__name__}.nn.functional")
    found = []
    for name, use in USES.items():
        x, c, w = (torch.full((2, 3), 0.5) for _ in range(3))
        at = torch.tensor([0, 1])
        use(F, x, c, w, at)  # the form of the call is known then
        w.requires_grad_()
        found.append((name, raises(lambda use=use, x=x, c=c, w=w, at=at: use(F, x, c, w, at))))
        x.requires_grad_()
        found.append(raises(lambda use=use, x=x, c=c, w=w, at=at: use(F, x, c, w, at)))
        with torch.no_grad():
            found.append(use(F, x, c, w, at))
        found.append(use(F, x, c, w.detach(), at).requires_grad)
    return found


@claim
def distinct_elements_have_a_history_that_backward_refuses(torch):
    found = []
    for function in (torch.unique, torch.unique_consecutive):
        for options in ({}, {"dim": 0}, {"return_inverse": True}, {"return_counts": True, "dim": 1}):
            x = torch.tensor([[1.0, 2.0], [1.0, 2.0]], requires_grad=True)
            results = function(x, **options)
            results = results if isinstance(results, tuple) else (results,)
            found.append([(r, type(r.grad_fn).__name__) for r in results])
            found.append(raises(lambda r=results[0]: r.sum().backward()))
            found.append(torch.autograd.grad((function(x.detach(), **options)[0] * x).sum(), x))
    return found


@claim
def distinct_elements_have_no_tangents(torch):
    x = torch.tensor([1.0, 1.0])
    return raises(lambda: torch.func.jvp(torch.unique, (x,), (x,))[1].sum().item())


@claim
def class_weights_of_probabilities_learn(torch):
    F = import_module(f"{torch.__name__}.nn.functional")
    found = []
    for shape in ((3,), (2, 3), (2, 3, 2)):
        for options in ({}, {"label_smoothing": 0.2}, {"reduction": "sum"}, {"reduction": "none"}):
            x = torch.arange(1.0, 1.0 + prod(shape)).reshape(shape).sin().requires_grad_()
            target = torch.softmax(x.detach().cos(), min(1, len(shape) - 1)).requires_grad_()
            weight = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
            loss = F.cross_entropy(x, target, weight, **options)
            found += [loss, torch.autograd.grad(loss.sum(), [x, target, weight])]
    found.append(raises(lambda: F.cross_entropy(x, target, weight[:2])))
    found.append(raises(lambda: F.cross_entropy(x, target, weight, label_smoothing=2.0)))
    found.append(raises(lambda: F.cross_entropy(x, target, weight, ignore_index=1)))
    return found


@pytest.mark.parametrize("claimed", claim, ids=name_of)
def test_as_in_pytorch(claimed):
    same(claimed)
