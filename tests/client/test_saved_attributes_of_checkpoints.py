"""Reading the saved values of a checkpointed function's nodes recomputes them, under torch and gradwire."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from tests.side_by_side import same

pytestmark = pytest.mark.usefixtures("session")


class Counted:
    """A function to checkpoint that counts its runs."""

    def __init__(self, torch: Any) -> None:
        self.runs = 0
        self.checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    def __call__(self, x: Any) -> Any:
        self.runs += 1
        return (x * x).exp().sin()

    def checkpointed(self, x: Any) -> Any:
        return self.checkpoint(self, x, use_reentrant=False)


def test_each_look_runs_the_function_again_and_backward_once_more() -> None:
    def claim(torch: Any) -> Any:
        function, x = Counted(torch), torch.arange(3.0, requires_grad=True)
        out = function.checkpointed(x)
        found = [(out.grad_fn._saved_self.detach(), function.runs) for _ in range(2)]
        out.sum().backward()
        return found, function.runs, x.grad

    same(claim)


def test_what_backward_freed_is_refused_at_once() -> None:
    def claim(torch: Any) -> Any:
        function, x = Counted(torch), torch.arange(3.0, requires_grad=True)
        out = function.checkpointed(x)
        out.sum().backward()
        return out.grad_fn._saved_self

    same(claim)


def test_a_look_between_two_backwards() -> None:
    def claim(torch: Any) -> Any:
        function, x = Counted(torch), torch.arange(3.0, requires_grad=True)
        out = function.checkpointed(x)
        out.sum().backward(retain_graph=True)
        seen = out.grad_fn._saved_self.detach()
        out.sum().backward()
        return seen, x.grad

    same(claim)


def test_a_look_into_a_checkpoint_inside_of_another() -> None:
    def claim(torch: Any) -> Any:
        function, x = Counted(torch), torch.arange(3.0, requires_grad=True)
        out = function.checkpoint(lambda x: function.checkpointed(x * 0.5) * 1.5, x, use_reentrant=False)
        inner = out.grad_fn.next_functions[0][0]
        seen = inner._saved_self.detach()
        out.sum().backward()
        return seen, x.grad

    same(claim)


def test_a_look_during_backward_is_what_it_is_without_a_checkpoint() -> None:
    """PyTorch refuses to compute it for the hook and for the node."""

    def claim(torch: Any) -> Any:
        function, x = Counted(torch), torch.arange(3.0, requires_grad=True)
        out = (function if torch.__name__ == "torch" else function.checkpointed)(x * 1)
        node, seen = out.grad_fn, []
        node.register_prehook(lambda grads: seen.append(node._saved_self.detach()))
        out.sum().backward()
        return seen, x.grad

    same(claim)
