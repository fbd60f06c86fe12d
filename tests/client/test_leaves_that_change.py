"""Whether an operand requires grad is asked when its derivative uses it: told after the op, it counts, as in PyTorch.

Of views of such an operand that were made before, PyTorch says that a gradient with them requires grad, but its history
leads nowhere; gradwire says that it does not require grad.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
import torch
from tests.client.test_second_backward_after_a_write import OPS
from tests.side_by_side import close

import gradwire

BINARY: Final = ("add", "div", "linear", "maximum", "mm", "mul", "norm", "pow", "sum", "where")
CHANGES: Final = {
    "from then on": (False, [True]),
    "no more": (True, [False]),
    "again": (True, [False, True]),
    "for a while": (False, [True, False]),
}


def told(lib: Any, name: str, change: str, record: str) -> list[Any]:
    """What becomes of a gradient, and of its gradient, where ``x`` starts or stops to require grad after the op."""
    first, then = CHANGES[change]
    w = lib.tensor([[0.5, 1.5], [2.0, 0.75]], requires_grad=True)
    x = lib.tensor([[1.0, 2.0], [0.25, 3.0]], requires_grad=first)
    y = OPS[name](lib, x, w)
    for requires in then:
        x.requires_grad_(requires)
    if record == "grad":
        (g,) = lib.autograd.grad(y.sum(), w, create_graph=True)
    else:
        y.sum().backward(create_graph=True)
        g = w.grad
    found: list[Any] = [g.requires_grad, g.detach().tolist()]
    for leaf in (x, w):
        if g.requires_grad and leaf.requires_grad:
            (again,) = lib.autograd.grad((g * g).sum(), leaf, allow_unused=True, retain_graph=True)
            found.append(None if again is None else again.tolist())
    found.append(None if x.grad is None else x.grad.detach().tolist())
    return found


@pytest.mark.parametrize("record", ["grad", "backward"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore:.*create_graph.*")
def test_the_history_of_a_gradient_has_what_requires_grad_by_then(name: str, change: str, record: str) -> None:
    ours, theirs = (told(lib, name, change, record) for lib in (gradwire, torch))
    assert close(theirs, ours), (theirs, ours)


def test_a_gradient_of_a_gradient_asks_too() -> None:
    def run(lib: Any) -> bool:
        w, v = (lib.ones(3, requires_grad=True) for _ in range(2))
        x = lib.tensor([1.0, 2.0, 3.0])
        (g,) = lib.autograd.grad((x * w).sum(), w, v.sum(), create_graph=True)
        x.requires_grad_()
        (h,) = lib.autograd.grad(g.sum(), v, create_graph=True)
        return bool(h.requires_grad)

    assert run(gradwire) == run(torch)
