"""Nested checkpoints of both forms, differentiated with ``create_graph``, again after ``retain_graph``, and inside the
checkpointed function.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import pytest
import torch
from tests.side_by_side import built_in, close

import gradwire

pytestmark = pytest.mark.usefixtures("session")

Run = Callable[..., Any]
FORMS: Final = [form for depth in (1, 2, 3) for form in itertools.product((False, True), repeat=depth)]


class Program:
    """Functions to checkpoint, over one library."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.x = lib.tensor([0.3, 0.4], dtype=lib.float64, requires_grad=True)
        self.w = lib.tensor([1.5, 0.7], dtype=lib.float64, requires_grad=True)
        self.scaled = self.w * 1.5
        self.calls: list[str] = []

    def elementwise(self, x: Any) -> Any:
        return (x * self.w).tanh() * x.exp()

    def views(self, x: Any) -> Any:
        return (x[None] * self.w).reshape(-1)[:2].exp() + self.lib.cat([x.sin(), self.w])[:2]

    def in_place(self, x: Any) -> Any:
        z = x.exp() * self.w
        z.mul_(2)
        return z.sin()

    def several_results(self, x: Any) -> Any:
        return sum(x.exp().unbind()) * x.sort().values * self.lib.logsumexp(x * self.w, 0)

    def itself(self, x: Any) -> Any:
        return x

    def tensor_hook(self, x: Any) -> Any:
        y = x.sin()
        if y.requires_grad:
            y.register_hook(lambda g: g * 2)
        return y.exp()

    def node_hook(self, x: Any) -> Any:
        y = x.sin()
        if y.requires_grad:
            y.grad_fn.register_hook(lambda ours, _: (None if ours[0] is None else ours[0] * 3,))
        return y.exp()

    def custom_function(self, x: Any) -> Any:
        class Cube(self.lib.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = x**3
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                x, y = ctx.saved_tensors
                return g * 3 * y / x

        return Cube.apply(x.exp()).sin()

    def custom_function_that_saves_no_input(self, x: Any) -> Any:
        scaled = self.scaled

        class Scale(self.lib.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(scaled, x)
                return x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                kept, x = ctx.saved_tensors
                return 2 * x * g * kept

        return Scale.apply(x)

    def custom_function_with_an_attribute(self, x: Any) -> Any:
        calls = self.calls

        class Count(self.lib.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                calls.append("forward")
                ctx.number = len(calls)
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return 2 * g * ctx.number

        return Count.apply(x) * x

    def hooks_around_what_is_saved(self, x: Any) -> Any:
        y = x.exp()
        with self.lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 1, lambda t: t):
            y = (y * self.w).sin()
        return y.tanh()

    def gradient_inside(self, x: Any) -> Any:
        y = x.sin() * self.w
        if y.requires_grad:
            return y * self.lib.autograd.grad(y.sum(), self.w, create_graph=True)[0]
        return y * x.sin()


FUNCTIONS: Final = [name for name, each in vars(Program).items() if callable(each) and name[0] != "_"]


def gradient(lib: Any, z: Any, x: Any, w: Any) -> Any:
    z.sum().backward()
    return x.grad, w.grad


def gradient_twice(lib: Any, z: Any, x: Any, w: Any) -> Any:
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    return x.grad, w.grad


def gradient_of_a_freed_graph(lib: Any, z: Any, x: Any, w: Any) -> Any:
    total = (z * z).sum()
    total.backward()
    total.backward()


def third_derivative(lib: Any, z: Any, x: Any, w: Any) -> Any:
    (first,) = lib.autograd.grad(z.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sin().sum(), x, create_graph=True)
    return first, second, *lib.autograd.grad(second.sum(), x, allow_unused=True)


def second_derivative_twice(lib: Any, z: Any, x: Any, w: Any) -> Any:
    gradients = [g for g in lib.autograd.grad(z.sum(), [x, w], create_graph=True, allow_unused=True) if g is not None]
    total = sum((g * g).sum() for g in gradients)
    again = lib.autograd.grad(total, [x, w], retain_graph=True, allow_unused=True)
    return *gradients, *again, *lib.autograd.grad(total, [x, w], allow_unused=True)


def second_derivative_without_the_graph(lib: Any, z: Any, x: Any, w: Any) -> Any:
    (first,) = lib.autograd.grad((z * z).sum(), x, create_graph=True, retain_graph=False)
    return first, *lib.autograd.grad((first * first).sum(), x)


def penalty(lib: Any, z: Any, x: Any, w: Any) -> Any:
    z.sum().backward(create_graph=True)
    gradients, x.grad, w.grad = (x.grad, w.grad), None, None
    (z.sum() + sum((g * g).sum() for g in gradients if g is not None)).backward()
    return *gradients, x.grad, w.grad


WAYS: Final = (
    gradient, gradient_twice, gradient_of_a_freed_graph, third_derivative, second_derivative_twice,
    second_derivative_without_the_graph, penalty,
)  # fmt: skip


def nested(lib: Any, function: Run, forms: tuple[bool, ...]) -> Run:
    checkpoint = import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
    for depth, form in enumerate(reversed(forms)):

        def inside(x: Any, function: Run = function, form: bool = form) -> Any:
            return checkpoint(function, x, use_reentrant=form)

        if depth == len(forms) - 1:
            return inside

        def function(x: Any, inside: Run = inside) -> Any:
            return inside(inside(x * 0.5).cos()) * x

    raise AssertionError("no forms")


def outcome(lib: Any, name: str, forms: tuple[bool, ...], way: Run, around: str) -> Any:
    program = Program(lib)
    hooks = lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 1, lambda t: t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with hooks if around == "saved_tensors_hooks" else contextlib.nullcontext():
                z = nested(lib, getattr(program, name), forms)(program.x)
            if around == "hook":
                z.register_hook(lambda g: g * g)
            found = way(lib, z, program.x, program.w)
            return [None if g is None else g.tolist() for g in found or ()]
        except Exception as error:
            return built_in(error)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("forms", FORMS, ids=lambda forms: "-".join("reentrant" if f else "plain" for f in forms))
def test_nested_checkpoints_are_differentiated_as_in_pytorch(forms: tuple[bool, ...], way: Run) -> None:
    names = FUNCTIONS if len(forms) < 3 else ["elementwise"]
    problems = []
    for name in names:
        expected, found = (outcome(lib, name, forms, way, "") for lib in (torch, gradwire))
        if not close(expected, found):
            problems.append(f"{name}: {found}, in PyTorch {expected}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("around", ["saved_tensors_hooks", "hook"])
@pytest.mark.parametrize("forms", [form for form in FORMS if len(form) < 3])
def test_hooks_around_nested_checkpoints_act_as_in_pytorch(forms: tuple[bool, ...], around: str) -> None:
    for name, way in itertools.product(("elementwise", "custom_function", "hooks_around_what_is_saved"), WAYS):
        expected, found = (outcome(lib, name, forms, way, around) for lib in (torch, gradwire))
        assert close(expected, found), f"{name}, {way.__name__}: {found}, in PyTorch {expected}"


def test_gradients_taken_inside_and_around_checkpoints_in_every_order_are_those_without() -> None:
    def with_grad(function: Run) -> Run:
        return lambda x: gradwire.autograd.grad(function(x).sum(), x, create_graph=True)[0]

    def plain(x: Any) -> Any:
        return x.sin().exp().sin() * x

    for depth in (1, 2, 3):
        for checkpointed in itertools.product((False, True), repeat=depth + 1):
            function, expected = plain, plain
            for level, inside in enumerate(checkpointed):
                if inside:
                    function = nested(gradwire, function, (False,))
                if level < depth:
                    function, expected = with_grad(function), with_grad(expected)
            x = gradwire.tensor([0.3, 0.4], dtype=gradwire.float64, requires_grad=True)
            assert gradwire.allclose(function(x), expected(x)), checkpointed
