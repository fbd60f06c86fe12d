"""Custom Functions and hooks on mapped tensors, against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")
LIBS = (torch, gradwire)
BOTH = pytest.mark.parametrize("lib", LIBS, ids=["torch", "gradwire"])


def draw(*shape):
    return np.random.default_rng().standard_normal(shape)


def same(found, expected):
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-9)


def scaled_square(lib):
    """``x * x * w``, without support for vmap."""

    class ScaledSquare(lib.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x * x * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * 2 * x * w, g * x * x

    return ScaledSquare


def mapped_as_it_is(lib):
    class Mapped(scaled_square(lib)):
        generate_vmap_rule = True

    return Mapped


def mapped_by_its_own_method(lib):
    class Own(scaled_square(lib)):
        @staticmethod
        def vmap(info, in_dims, x, w):
            assert info.batch_size == 3 and info.randomness == "error"
            return Own.apply(x.movedim(in_dims[0], 0), w), 0

    return Own


SUPPORTED = pytest.mark.parametrize("make", [mapped_as_it_is, mapped_by_its_own_method])


@SUPPORTED
def test_a_function_is_mapped_and_differentiated_outside(make):
    x, w = draw(3, 2), draw(2)
    answers = []
    for lib in LIBS:
        leaves = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
        out = lib.vmap(make(lib).apply, (0, None))(*leaves)
        (out * out).sum().backward()
        answers.append([out, *(t.grad for t in leaves)])
    same(answers[1], answers[0])


@SUPPORTED
def test_a_function_is_differentiated_for_each_sample(make):
    x, w = draw(3, 2), draw(2)
    answers = []
    for lib in LIBS:
        function = make(lib)
        grad = lib.func.grad(lambda a, b, function=function: function.apply(a, b).sin().sum(), (0, 1))
        answers.append(lib.func.vmap(grad, (0, None))(lib.tensor(x), lib.tensor(w)))
    same(answers[1], answers[0])


@BOTH
def test_a_function_that_says_nothing_of_vmap_is_refused(lib):
    x = lib.tensor(draw(3, 2))
    with pytest.raises(RuntimeError):
        lib.vmap(lambda v: scaled_square(lib).apply(v, v))(x)


@BOTH
def test_a_function_that_says_two_things_of_vmap_is_refused(lib):
    class Both(mapped_by_its_own_method(lib)):
        generate_vmap_rule = True

    x = lib.tensor(draw(3, 2))
    with pytest.raises(RuntimeError):
        lib.vmap(lambda v: Both.apply(v, v))(x)


@BOTH
def test_a_function_without_setup_context_is_refused(lib):
    class Doubled(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            return x * 2

    x = lib.tensor(draw(3, 2))
    with pytest.raises(RuntimeError):
        lib.vmap(lambda v: Doubled.apply(v))(x)


def test_a_batch_of_gradients_passes_functions_and_hooks():
    x, w, seeds = draw(3, 2), draw(2), draw(4, 3, 2)
    answers = []
    for lib in LIBS:
        leaves = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
        inner = leaves[0] * 2
        inner.register_hook(lambda g: g * 3)
        out = scaled_square(lib).apply(inner, leaves[1])
        answers.append(lib.autograd.grad(out, leaves, lib.tensor(seeds), is_grads_batched=True))
    same(answers[1], answers[0])


@BOTH
def test_a_hook_on_a_mapped_tensor_is_refused(lib):
    leaf = lib.tensor(draw(3, 2), requires_grad=True)
    with pytest.raises(RuntimeError):
        lib.vmap(lambda v: (v * 2).register_hook(print) and v)(leaf)


def test_functions_inside_a_map_cost_no_round_trip(round_trips):
    x = gradwire.tensor(draw(3, 2), requires_grad=True)
    out = gradwire.vmap(lambda v: mapped_as_it_is(gradwire).apply(v, v))(x)
    out.sum().backward()
    gradient = x.grad
    assert round_trips() == 0
    np.testing.assert_allclose(gradient.numpy(), 3 * x.detach().numpy() ** 2)


@BOTH
def test_a_vmap_method_is_told_of_mapped_tensors_inside_containers(lib):
    told = []

    class Pair(lib.autograd.Function):
        @staticmethod
        def forward(x, pair):
            return x + pair[0] * pair[1]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, pair):
            told.append(in_dims)
            return (x, {"product": pair[0] * pair[1]}), (0, {"product": 0})

    x = lib.arange(3.0)
    first, second = lib.func.vmap(lambda v: Pair.apply(v, [v, v]), out_dims=0)(x)
    assert told == [(0, [0, 0])]
    assert first.tolist() == [0, 1, 2]
    assert second["product"].tolist() == [0, 1, 4]


@BOTH
@pytest.mark.parametrize(
    "answer", [lambda r: r, lambda r: (r, r, 0, 0), lambda r: (r, (None,)), lambda r: ((r, r), (0, 0, 0))]
)
def test_a_vmap_method_that_returns_no_fitting_pair_is_refused(lib, answer):
    class Wrong(lib.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return answer(x)

    with pytest.raises(RuntimeError):
        lib.func.vmap(Wrong.apply)(lib.ones(2, 3))


@pytest.mark.parametrize("name", ["new_empty", "new_zeros", "new_ones", "new_full"])
def test_what_a_mapped_tensor_makes_can_be_written_to_by_each_sample(name):
    x, y = draw(3), draw(3, 5)

    def call(lib):
        def total(row, sample):
            made = getattr(sample, name)(*(((5,), 2.0) if name == "new_full" else ((5,),)))
            made.copy_(row)
            return (made * made).sum()

        return lib.func.vmap(lib.func.grad(total))(lib.tensor(y), lib.tensor(x))

    same([call(gradwire)], [call(torch)])
