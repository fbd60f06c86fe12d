"""Invalid and extreme numbers as arguments: PyTorch's values, or its error class."""

from __future__ import annotations

import itertools
import math
import warnings

import pytest
import torch

import gradwire

INF, NAN = math.inf, math.nan


def outcome(lib, call):
    """The values, as text that tells NaN from numbers, or the class of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(lib)
            values = found.tolist()
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            return next(c for c in type(error).__mro__ if c.__module__ == "builtins").__name__
    return str(found.dtype), rounded(values)


def rounded(values):
    if isinstance(values, list):
        return [rounded(value) for value in values]
    if isinstance(values, complex):
        return rounded(values.real), rounded(values.imag)
    return values if not isinstance(values, float) else "nan" if values != values else float(f"{values:.5g}") + 0.0


def agree(call):
    assert outcome(gradwire, call) == outcome(torch, call)


@pytest.mark.parametrize("p", [1e300, -1e300, 1e39, 1e38, 2**63, None, True, NAN])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_norms_of_a_huge_order(p, dtype):
    agree(lambda lib: lib.norm(lib.tensor([3.0, -1, 2], dtype=getattr(lib, dtype)), p))


@pytest.mark.parametrize("p", [1e300, 1e39, 1e38, True])
def test_distances_of_a_huge_order(p):
    x, y = [[1.0, 2, 3], [4, 0, 1]], [[0.5, 2.5, 9]]
    agree(lambda lib: lib.cdist(lib.tensor(x), lib.tensor(y), p))
    agree(lambda lib: lib.pdist(lib.tensor(x), p))


@pytest.mark.parametrize("alpha", [NAN, INF, -INF, 0.5, 0, True, -1])
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "complex64"])
def test_index_add_of_any_alpha(alpha, dtype):
    def call(lib):
        into, source = lib.tensor([0, 1, 0]), lib.tensor([0, 1, 1])
        into, source = (t.to(getattr(lib, dtype)) for t in (into, source))
        return lib.index_add(into, 0, lib.tensor([0, 0, 2]), source, alpha=alpha)

    agree(call)


@pytest.mark.parametrize(("beta", "alpha"), list(itertools.product([1, 0, INF, True], [-INF, NAN, True, 2, 2**63])))
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "complex64"])
def test_addr_of_any_factors(beta, alpha, dtype):
    def call(lib):
        parts = (lib.tensor(v).to(getattr(lib, dtype)) for v in ([[1, 2], [0, 4]], [1, 2], [3, 0]))
        return lib.addr(*parts, beta=beta, alpha=alpha)

    agree(call)


@pytest.mark.parametrize("eps", [True, False, -1.0, NAN, INF])
def test_a_bool_is_a_float(eps):
    row = [[1.0, 2], [3, 5]]
    agree(lambda lib: lib.nn.functional.rms_norm(lib.tensor(row), (2,), eps=eps))
    agree(lambda lib: lib.nn.functional.layer_norm(lib.tensor(row), (2,), eps=eps))
    agree(lambda lib: lib.nn.functional.poisson_nll_loss(lib.tensor(row), lib.tensor(row), eps=eps, log_input=False))
    agree(lambda lib: lib.nn.functional.huber_loss(lib.tensor(row), lib.zeros(2, 2), delta=eps))
    agree(lambda lib: lib.nn.functional.smooth_l1_loss(lib.tensor(row), lib.zeros(2, 2), beta=eps))
    agree(lambda lib: lib.nn.functional.cosine_similarity(lib.tensor(row), lib.tensor(row[::-1]), eps=eps))


@pytest.mark.parametrize("alpha", [NAN, INF, -INF])
def test_elu_of_zero_is_zero(alpha):
    agree(lambda lib: lib.nn.functional.elu(lib.tensor([0.0, 1.0]), alpha))
    agree(lambda lib: lib.nn.functional.celu(lib.tensor([0.0, 1.0]), alpha))


def test_the_cosine_of_complex_vectors_is_refused():
    agree(lambda lib: lib.nn.functional.cosine_similarity(lib.tensor([[1 + 2j, 3]]), lib.tensor([[2 - 1j, 1j]])))
    agree(lambda lib: lib.nn.functional.cosine_similarity(lib.tensor([[1 + 2j, 3]]), lib.tensor([[2.0, 1.0]])))


PARTS = (INF, -INF, 2.0, NAN, 0.0)
NUMBERS = [complex(a, b) for a in PARTS for b in PARTS]


@pytest.mark.parametrize("last", [1 + 1j, complex(INF, 1), complex(-INF, 0)])
def test_running_log_sums_of_complex_infinities(last):
    rows = [[a, b, last] for a in NUMBERS for b in NUMBERS]
    found = gradwire.logcumsumexp(gradwire.tensor(rows, dtype=gradwire.complex128), 1).tolist()
    for row, mine, wanted in zip(
        rows, found, torch.logcumsumexp(torch.tensor(rows, dtype=torch.complex128), 1).tolist(), strict=True
    ):
        assert rounded(mine) == rounded(wanted), row


def test_the_second_derivative_of_ctc_loss_is_refused_on_its_line():
    for lib in (torch, gradwire):
        x = lib.randn(5, 2, 4).log_softmax(-1).detach().requires_grad_()
        labels, ends, sizes = lib.tensor([[1, 2], [2, 1]]), lib.tensor([5, 5]), lib.tensor([2, 2])
        loss = lib.nn.functional.ctc_loss(x, labels, ends, sizes)
        (first,) = lib.autograd.grad(loss, x, create_graph=True)
        assert first.requires_grad
        with pytest.raises(RuntimeError):
            lib.autograd.grad(first.sum(), x)
        with pytest.raises(RuntimeError):
            first.sum().backward()


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
@pytest.mark.parametrize("op", ["add", "sub"])
@pytest.mark.parametrize("other", [2, 3, -2, 0.5])
def test_factors_of_numbers_do_not_wrap_on_floats(dtype, op, other):
    agree(lambda lib: getattr(lib, op)(lib.ones(2, dtype=getattr(lib, dtype)), other, alpha=2**62))


@pytest.mark.parametrize("bounds", [(0, 2.0), (-1, 1.5), (-1.5, 1), (0, math.nan), (3, 1)])
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("tensor", [0, 1])
def test_clamp_between_a_number_and_a_tensor_without_dimensions(bounds, dtype, tensor):
    if dtype == "int64" and not all(math.isfinite(bound) and bound == int(bound) for bound in bounds):
        bounds = (0, 2)

    def call(form):
        def clamped(lib):
            given = list(bounds)
            given[tensor] = lib.tensor(given[tensor], dtype=getattr(lib, dtype))
            return form(lib, lib.tensor([-2.0, 0.5, 3]), *given)

        return clamped

    agree(call(lambda lib, x, low, high: x.clamp(low, high)))
    agree(call(lambda lib, x, low, high: lib.clip(x.long(), min=low, max=high)))
    agree(call(lambda lib, x, low, high: x.clamp_(low, high)))
    agree(call(lambda lib, x, low, high: x.clamp(low, high[None] if isinstance(high, lib.Tensor) else high)))
    x = gradwire.tensor([-2.0, 0.5, 3], requires_grad=True)
    x.clamp(0, gradwire.tensor(2.0)).sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_an_eps_that_is_a_huge_integer_is_a_float():
    agree(lambda lib: lib.nn.functional.poisson_nll_loss(
        lib.tensor([1, 2]), lib.tensor([3, 4]), log_input=False, eps=2**63, reduction="none"
    ))  # fmt: skip
    agree(lambda lib: lib.logspace(-INF, 2, 3))


@pytest.mark.parametrize(("dtype", "large"), [("float32", 3e38), ("float64", 1.7e308)])
def test_a_histogram_whose_range_overflows_counts_every_element(dtype, large):
    x = gradwire.tensor([-large / 3, large / 9, large * 0.6, large], dtype=getattr(gradwire, dtype))
    assert gradwire.histc(x, 4, -large, large).tolist() == [0.0, 1.0, 1.0, 2.0]  # PyTorch counts none
