"""Which results of a Function have tangents, what its ``jvp`` finds saved, and which object an input changed in place
is afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.side_by_side import same

pytestmark = pytest.mark.usefixtures("session")

RETURNED: Final[dict[str, Callable[[Any], Any]]] = {
    "no tangent": lambda g: None,
    "the other's tangent": lambda g: g,
    "a new tangent": lambda g: g * 2,
}


def _function(torch: Any, **methods: Any) -> Any:
    return type("Own", (torch.autograd.Function,), {name: staticmethod(m) for name, m in methods.items()})


def _parts(torch: Any, tensor: Any) -> list[Any]:
    return [None if part is None else part.tolist() for part in torch.autograd.forward_ad.unpack_dual(tensor)]


@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("marked", [False, True], ids=["", "marked"])
@pytest.mark.parametrize("second", ["dual", "plain", "integers"])
def test_a_result_that_is_not_differentiable_has_no_tangent(second, marked, returned):
    def claim(torch):
        def forward(ctx, x, y):
            copy = y.clone()
            if marked:
                ctx.mark_non_differentiable(copy)
            return x.clone(), copy

        own = _function(torch, forward=forward, jvp=lambda ctx, g, h: (g, RETURNED[returned](g)))
        make = torch.autograd.forward_ad.make_dual
        with torch.autograd.forward_ad.dual_level():
            y = torch.ones(2, dtype=torch.int64) if second == "integers" else torch.ones(2)
            if second == "dual":
                y = make(y, torch.full((2,), 3.0))
            results = own.apply(make(torch.ones(2), torch.full((2,), 5.0)), y)
            return [_parts(torch, r) for r in results]

    same(claim)


@pytest.mark.parametrize("kept", [(), ("backward",), ("forward",), ("backward", "forward")], ids=" and ".join)
@pytest.mark.parametrize("separate", [False, True], ids=["", "setup_context"])
def test_jvp_finds_what_was_saved_for_forward_alone(kept, separate):
    def claim(torch):
        found = []

        def keep(ctx, x):
            for way in kept:
                getattr(ctx, f"save_for_{way}")(*[x] * (2 if way == "backward" else 1))

        def forward(ctx, x):
            keep(ctx, x)
            return x * 2

        def jvp(ctx, g):
            found.append(len(ctx.saved_tensors))
            return g * 2

        methods: dict[str, Any] = {"forward": forward}
        if separate:
            methods = {"forward": lambda x: x * 2, "setup_context": lambda ctx, inputs, output: keep(ctx, inputs[0])}
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
            _function(torch, jvp=jvp, **methods).apply(dual)
        return found

    same(claim)


@pytest.mark.parametrize("tangent", ["untouched", "changed", "changed by nothing", "replaced"])
@pytest.mark.parametrize("recorded", [False, True], ids=["", "recorded"])
def test_a_dual_input_that_forward_changes_is_its_result(recorded, tangent):
    ways: dict[str, Callable[[Any], Any]] = {
        "untouched": lambda g: g, "changed": lambda g: g.mul_(2), "changed by nothing": lambda g: g.add_(0),
        "replaced": lambda g: g * 2,
    }  # fmt: skip

    def claim(torch):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        own = _function(torch, forward=forward, backward=lambda ctx, g: g * 2, jvp=lambda ctx, g: ways[tangent](g))
        leaf, given = torch.ones(2, requires_grad=recorded), torch.full((2,), 3.0)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(leaf.clone(), given)
            result = own.apply(dual)
            found = [result is dual, result.requires_grad, given.tolist(), *_parts(torch, result), *_parts(torch, dual)]
            if recorded:
                result.sum().backward()
                found.append(leaf.grad.tolist())
            return found

    same(claim)
