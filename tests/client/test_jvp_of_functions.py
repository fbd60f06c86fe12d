"""Which tangents a Function's ``jvp`` may return if forward returns a view or writes in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.side_by_side import same

pytestmark = pytest.mark.usefixtures("session")


def rows(tensor: Any) -> Any:
    return tensor.narrow(0, 0, 2)


Forward = Callable[[Any, Any], Any]
CASES: Final[dict[str, tuple[Forward, Forward]]] = {
    "a view of each": (lambda x, y: rows(x), lambda g, h: rows(g)),
    "a copy for a view": (lambda x, y: rows(x), lambda g, h: rows(g).clone()),
    "a view of a copy": (lambda x, y: rows(x), lambda g, h: rows(g.clone())),
    "a view of another tangent": (lambda x, y: rows(x), lambda g, h: rows(h)),
    "the input itself, a view": (lambda x, y: x, lambda g, h: g.view_as(g)),
    "the input itself, a copy": (lambda x, y: x, lambda g, h: g.clone()),
    "a view of a new tensor": (lambda x, y: rows(x * 2), lambda g, h: rows(g)),
    "a view for a new tensor": (lambda x, y: x * 2, lambda g, h: g.view_as(g)),
    "a detached input": (lambda x, y: x.detach(), lambda g, h: g.clone()),
    "in place": (lambda x, y: x.mul_(2), lambda g, h: g.mul_(2)),
    "a new tangent for an input changed in place": (lambda x, y: x.mul_(2), lambda g, h: g * 2),
    "another tangent for an input changed in place": (lambda x, y: x.mul_(2), lambda g, h: h.mul_(2)),
}


@pytest.mark.parametrize("viewed", [False, True], ids=["an input", "a view as input"])
@pytest.mark.parametrize("case", CASES)
def test_a_tangent_comes_to_be_as_its_result_does(case, viewed):
    forward, jvp = CASES[case]

    def claim(torch):
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                if "in place" in case:
                    ctx.mark_dirty(x)
                return forward(x, y)

        Own.jvp = staticmethod(lambda ctx, g, h: jvp(g, h))
        with torch.autograd.forward_ad.dual_level():
            make, unpack = torch.autograd.forward_ad.make_dual, torch.autograd.forward_ad.unpack_dual
            one = make(torch.ones(4, 3), torch.ones(4, 3) * 3)
            result = Own.apply(one.view_as(one) if viewed else one, make(torch.ones(4, 3), torch.ones(4, 3) * 2))
            return [t.tolist() for t in (*unpack(result), *unpack(one))]

    same(claim)


@pytest.mark.parametrize("recorded", [False, True], ids=["", "recorded"])
@pytest.mark.parametrize("part", ["an input", "a view as input", "a transposed view as input"])
def test_an_input_without_tangent_that_forward_changes_receives_that_of_the_result(part, recorded):
    def claim(torch):
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.mark_dirty(x)
                return x.mul_(y)

            @staticmethod
            def jvp(ctx, g, h):
                return h * 3

            @staticmethod
            def backward(ctx, g):
                return g * 2, g * 5

        with torch.autograd.forward_ad.dual_level():
            make, unpack = torch.autograd.forward_ad.make_dual, torch.autograd.forward_ad.unpack_dual
            whole = torch.ones(3, 3)
            x = whole if part == "an input" else whole[:2].t()[:, :2] if "transposed" in part else whole[:2]
            y = make(
                (torch.ones(x.shape) * 2).requires_grad_(recorded), torch.arange(9.0)[: x.numel()].reshape(x.shape)
            )
            result = Own.apply(x, y)
            found = [unpack(t).tangent.tolist() for t in (result, x, whole, x * 2)]
            history = [None if t.grad_fn is None else t.grad_fn.name() for t in (result, x)]
            if recorded and part == "an input":
                (result * result).sum().backward()
                found.append(y.grad is None)
            return found, history, result is x, x._version, x.tolist()

    same(claim)


def test_the_history_of_such_a_tangent_is_kept():
    def claim(torch):
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.mark_dirty(x)
                return x.mul_(y)

            @staticmethod
            def jvp(ctx, g, h):
                return h * h

        with torch.autograd.forward_ad.dual_level():
            tangent = torch.full((2,), 3.0, requires_grad=True)
            y = torch.autograd.forward_ad.make_dual(torch.ones(2), tangent)
            result = Own.apply(torch.ones(2), y)
            torch.autograd.forward_ad.unpack_dual(result).tangent.sum().backward()
        return tangent.grad

    same(claim)
