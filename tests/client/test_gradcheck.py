"""``gradcheck`` with finite differences: what passes and what fails, as in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd.gradcheck import GradcheckError as TorchGradcheckError

import gradwire
from gradwire.autograd import gradcheck, gradgradcheck
from gradwire.autograd.gradcheck import GradcheckError

pytestmark = [pytest.mark.usefixtures("session"), pytest.mark.filterwarnings("ignore:.*double precision")]
BOTH = pytest.mark.parametrize("lib", [torch, gradwire], ids=["torch", "gradwire"])
X = np.array([0.5, -1.0, 2.0])
Z = np.array([1 + 2j, -0.5j])


def error_of(lib):
    return TorchGradcheckError if lib is torch else GradcheckError


def leaf(lib, values):
    return lib.tensor(values, requires_grad=True)


GOOD = {
    "elementwise": (lambda x: x.exp() * x, X),
    "several": (lambda x, y: (x * y, (x * y).sum(), x.detach().long()), X, X + 1),
    "an unused input": (lambda x, y: x * 2, X, X),
    "linear": (lambda x: 2 * x, X),
    "the input itself": (lambda x: x, X),
    "a matrix": (lambda x: x @ x, np.arange(4.0).reshape(2, 2)),
    "empty": (lambda x: x[:0], X),
    "an empty input": (lambda x, y: x.sum() + y * y, np.zeros(0), X),
    "complex": (lambda z: z * z * z.conj(), Z),
    "complex to real": (lambda z: z.abs(), Z),
    "real to complex": (lambda x: x * (1 + 2j), X),
}


@BOTH
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("case", GOOD)
def test_right_gradients_pass(lib, case, fast):
    func, *arrays = GOOD[case]
    assert lib.autograd.gradcheck(func, tuple(leaf(lib, a) for a in arrays), fast_mode=fast)


@BOTH
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("case", [c for c in GOOD if "empty" not in c])
def test_right_second_gradients_pass(lib, case, fast):
    func, *arrays = GOOD[case]
    assert lib.autograd.gradgradcheck(func, tuple(leaf(lib, a) for a in arrays), fast_mode=fast)


def wrong(x):
    """Value x * x, gradient x."""
    return x * x.detach()


@BOTH
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("values", [X, Z])
def test_wrong_gradients_fail(lib, values, fast):
    x = leaf(lib, values)
    with pytest.raises(error_of(lib), match="Jacobian mismatch for output 0 with respect to input 0"):
        lib.autograd.gradcheck(wrong, (x,), fast_mode=fast)
    assert lib.autograd.gradcheck(wrong, x, raise_exception=False, fast_mode=fast) is False


def test_the_message_names_output_input_and_deviation():
    with pytest.raises(GradcheckError, match=r"output 1 with respect to input 1: .*deviation is 2, at element 2"):
        gradcheck(lambda x, y: (x * y, wrong(y)), (leaf(gradwire, X), leaf(gradwire, X)))


@BOTH
def test_wrong_second_gradients_fail(lib):
    with pytest.raises(error_of(lib)):
        lib.autograd.gradgradcheck(lambda x: x * x * x.detach() - 0.5 * x.detach() ** 2 * x, leaf(lib, X))


@BOTH
def test_outputs_without_gradients(lib):
    x = leaf(lib, X)
    assert lib.autograd.gradcheck(lambda t: lib.tensor([1.0]), x)
    with pytest.raises(error_of(lib)):
        lib.autograd.gradcheck(lambda t: t.detach() * 2, x)


@BOTH
def test_inputs_are_left_as_they_were_and_may_be_captured(lib):
    x = leaf(lib, X)
    assert lib.autograd.gradcheck(lambda *_: x * x, (x,))
    assert x.detach().numpy().tolist() == X.tolist()
    assert x.grad is None


@BOTH
def test_wrong_arguments_are_refused(lib):
    x = leaf(lib, X)
    with pytest.raises(ValueError):
        lib.autograd.gradcheck(wrong, x.detach())
    with pytest.raises(RuntimeError):
        lib.autograd.gradcheck(wrong, lib.tensor([1.0]).double().expand(2).requires_grad_())
    with pytest.raises(AssertionError):
        lib.autograd.gradcheck(wrong, x, check_backward_ad=False)
    with pytest.raises(AssertionError):
        lib.autograd.gradgradcheck(wrong, x, check_rev_over_rev=False)
    with pytest.warns(UserWarning, match="precision"), pytest.raises(error_of(lib)):
        lib.autograd.gradcheck(wrong, x.detach().float().requires_grad_())


EVERYTHING = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}


@BOTH
@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", [n for n in GOOD if "unused" not in n and "empty" not in n])
def test_forward_mode_and_batched_derivatives_pass(name, fast, lib):
    func, *values = GOOD[name]
    leaves = tuple(leaf(lib, v) for v in values)
    everything = EVERYTHING
    if lib is torch and name == "complex":
        everything = {"check_forward_ad": True}  # PyTorch cannot batch this one
    assert lib.autograd.gradcheck(func, leaves, **everything, fast_mode=fast)
    assert lib.autograd.gradcheck(func, leaves, check_forward_ad=True, check_backward_ad=False, fast_mode=fast)


@BOTH
@pytest.mark.parametrize("values", [X, Z], ids=["real", "complex"])
def test_second_derivatives_by_forward_over_reverse_pass(values, lib):
    x = leaf(lib, values)
    func = lambda t: t * t.sin()
    assert lib.autograd.gradgradcheck(func, x, check_fwd_over_rev=True, check_batched_grad=True)
    only_forward = {"check_rev_over_rev": False, "check_fwd_over_rev": True, "check_undefined_grad": False}
    assert lib.autograd.gradgradcheck(func, x, **only_forward)


@BOTH
@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
def test_a_wrong_forward_derivative_is_reported(fast, lib):
    def half_constant(t):
        return t * t.detach()

    with pytest.raises(error_of(lib), match=r"(?i)forward"):
        lib.autograd.gradcheck(
            half_constant, leaf(lib, X), check_forward_ad=True, check_backward_ad=False, fast_mode=fast
        )
    kinds = {"check_forward_ad": True, "check_backward_ad": False, "raise_exception": False}
    assert not lib.autograd.gradcheck(half_constant, leaf(lib, X), **kinds)


def test_a_check_of_everything_is_one_round_trip(round_trips):
    x = leaf(gradwire, X)
    round_trips()
    assert gradcheck(lambda a: (a.exp(), a.sum() * a), x, **EVERYTHING)
    assert round_trips() == 1


def test_second_gradients_with_given_or_scattered_vectors():
    x = leaf(gradwire, X)
    assert gradgradcheck(lambda t: t**3, x, gradwire.tensor(X))
    assert gradgradcheck(lambda t: t**3, x, gen_non_contig_grad_outputs=True)


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_a_check_is_one_round_trip(check, round_trips):
    x, y = leaf(gradwire, X), leaf(gradwire, X + 1)
    round_trips()
    assert check(lambda a, b: (a * b, a.exp().sum()), (x, y))
    assert round_trips() == 1


def test_the_name_is_the_function_as_in_torch():
    assert gradwire.autograd.gradcheck is gradcheck
    assert issubclass(GradcheckError, RuntimeError)


def needs_gradients(lib, x):
    copy = x.clone()
    copy.register_hook(lambda gradient: gradient.undefined if gradient is None else None)
    return copy


def refuses_none(lib, x):
    def hook(gradient):
        if gradient is None:
            raise RuntimeError("no gradient")

    copy = x.clone()
    copy.register_hook(hook)
    return copy


def makes_one_up(lib, x):
    class MakesOneUp(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return lib.ones(3, dtype=lib.float64) if gradient is None else gradient * 2

    return MakesOneUp.apply(x)


def wants_one_of_two(lib, x):
    class WantsOneOfTwo(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, one, two):
            if one is None and two is None:
                return None
            return (0 if one is None else one * 2) + (0 if two is None else two * 3)

    return WantsOneOfTwo.apply(x)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("func", [needs_gradients, refuses_none, makes_one_up, wants_one_of_two])
@pytest.mark.filterwarnings("ignore")
def test_backward_must_stand_gradients_that_are_undefined(func, fast):
    found = []
    for lib in (torch, gradwire):
        for undefined in (True, False):
            try:
                passed = lib.autograd.gradcheck(
                    lambda x, lib=lib: func(lib, x), (leaf(lib, X),), fast_mode=fast, check_undefined_grad=undefined
                )
                found.append(passed)
            except Exception as error:
                found.append(type(error).__name__)
    assert found[:2] == found[2:]


@BOTH
def test_a_mismatch_is_told_before_an_undefined_gradient_that_fails(lib):
    def func(x):
        copy = x.clone()
        copy.register_hook(lambda gradient: gradient + 0.01)
        return copy

    with pytest.raises(error_of(lib), match="mismatch"):
        lib.autograd.gradcheck(func, (leaf(lib, X),))


@BOTH
def test_batched_forward_mode_maps_the_jvp_of_a_function(lib):
    calls = []

    class Pair(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, x, y):
            calls.append(1)
            return x, y

    inputs = leaf(lib, X[:1]), leaf(lib, X[1:2])
    assert lib.autograd.gradcheck(
        Pair.apply, inputs, check_forward_ad=True, check_backward_ad=False, check_batched_forward_grad=True
    )
    assert len(calls) == 12
