"""Views of a leaf made without gradients: backward runs, and no gradient reaches the leaf."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.side_by_side import Claims, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def view(torch):
    x = torch.arange(4.0).requires_grad_()
    with torch.no_grad():
        return x, x[1:]


@claim
def hooks_of_nodes_behind_which_there_is_nothing_run(torch):
    log, (x, v) = [], view(torch)
    y = v * v
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: log.append(["before", grads[0].tolist()]))
    y.grad_fn.register_hook(lambda ins, outs: log.append(["after", [g is None for g in ins], outs[0].tolist()]))
    y.sin().sum().backward()
    return log, y.grad, x.grad, v.grad


@claim
def a_derivative_of_the_programs_own_runs(torch):
    log, (x, v) = [], view(torch)

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            log.append([g.tolist(), ctx.saved_tensors[0].tolist()])
            return g

    y = Own.apply(v)
    y.sum().backward(retain_graph=True)
    torch.autograd.grad(y.sum(), [y])
    return log, x.grad, y.requires_grad


@claim
def a_checkpoint_is_computed_again(torch):
    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    log, (x, v) = [], view(torch)
    y = checkpoint(lambda a: log.append("run") or a.sin().exp(), v, use_reentrant=False)
    y.sum().backward()
    return log, x.grad


@claim
def a_write_of_one_into_another_tensor_is_freed(torch):
    x, v = view(torch)
    y = torch.zeros(4)
    y[1:] = v * v
    y.sum().backward()
    return x.grad, y.grad_fn.name()


@claim
def a_part_without_elements_can_begin_anywhere(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = torch.zeros(0, 2)
    y[:, -1] += x[:1, 0]
    y.sum().backward(retain_graph=True)
    (second,) = torch.autograd.grad((y * y).sum(), [x], create_graph=True)
    return x.grad, second, torch.as_strided_scatter(torch.zeros(2), torch.zeros(0), (0,), (1,), 5)


@pytest.mark.parametrize("claimed", claim, ids=name_of)
def test_claim(claimed):
    same(claimed)
