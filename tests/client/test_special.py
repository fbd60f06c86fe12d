"""``gradwire.special``, windows, calculus, histograms and aliases of functions, against torch."""

from __future__ import annotations

import pytest
import torch
from tests.side_by_side import Claims, name_of, same

import gradwire
import gradwire.special
from gradwire._core.composed.elementwise import ALIASES

pytestmark = pytest.mark.usefixtures("session")
claims = Claims()

NAMES = sorted(set(torch.special.__all__) - {"math"})
POLYNOMIALS = [n for n in NAMES if "polynomial" in n]
PAIRS = ["gammainc", "gammaincc", "xlog1py", "xlogy", "zeta"]
MORE = {
    "multigammaln": lambda lib, x: lib.special.multigammaln(x + 3, 2),
    "polygamma": lambda lib, x: lib.special.polygamma(2, x),
    "softmax": lambda lib, x: lib.special.softmax(x, 0),
    "log_softmax": lambda lib, x: lib.special.log_softmax(x, 0),
    "logsumexp": lambda lib, x: lib.special.logsumexp(x, 0),
    "round": lambda lib, x: lib.special.round(x, decimals=1),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_special_function_and_its_gradient(name):
    def called(lib):
        x = lib.tensor([0.15, 0.4, 0.85], dtype=lib.float64, requires_grad=True)
        y = lib.tensor([1.5, 2.5, 3.0], dtype=lib.float64, requires_grad=name not in ("gammainc", "gammaincc"))
        function = getattr(lib.special, name)
        if name in MORE:
            found = MORE[name](lib, x)
        elif name in POLYNOMIALS:
            found = function(x, 3)
        elif name in PAIRS:
            found = function(y.detach(), x)
        else:
            found = function(x)
        if not found.requires_grad:
            return found
        return found.detach(), found.requires_grad, lib.autograd.grad(found.sum(), x)

    same(called)


def test_the_namespace_is_torchs():
    assert set(NAMES) <= set(gradwire.special.__all__)


@claims
def polygamma_takes_the_order_first_as_a_function_and_last_as_a_method(lib):
    x = lib.tensor([0.5, 2.0])
    return lib.polygamma(1, x), x.polygamma(1), x.clone().polygamma_(2), lib.special.polygamma(0, x)


@claims
def a_derivative_by_the_order_does_not_exist(lib):
    a, x = lib.tensor([1.0], requires_grad=True), lib.tensor([2.0], requires_grad=True)
    return lib.autograd.grad(lib.igamma(a, x).sum(), (a, x))


@claims
def a_step_has_no_derivative(lib):
    x = lib.tensor([1.0], requires_grad=True)
    return lib.autograd.grad(lib.heaviside(x, x).sum(), x)


@claims
def a_negative_order(lib):
    return lib.polygamma(-1, lib.tensor([1.0]))


@claims
def filled_and_its_gradient(lib):
    x, v = lib.ones(2, 3, requires_grad=True), lib.tensor(2.0, requires_grad=True)
    return lib.autograd.grad(lib.fill(x, v).sum(), (x, v))


@claims
def powers_in_place_are_wide(lib):
    return lib.tensor([2.0, 3.0], dtype=lib.float64).float_power_(2)


@claims
def powers_in_place_do_not_fit_a_narrow_tensor(lib):
    return lib.tensor([2.0, 3.0]).float_power_(2)


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_another_name_exists_wherever_torch_has_it(name):
    for suffix in ("", "_"):
        if hasattr(torch, name + suffix) and name != "fix":
            assert getattr(gradwire, name + suffix) is getattr(gradwire, ALIASES[name] + suffix)
        if hasattr(torch.Tensor, name + suffix):
            assert hasattr(gradwire.Tensor, name + suffix)


# Windows

WINDOWS = ("hann", "hamming", "blackman", "bartlett", "kaiser")


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_any_length_and_dtype(name):
    def made(lib):
        make = getattr(lib, f"{name}_window")
        sizes = [make(n, periodic) for n in (0, 1, 2, 5, 8) for periodic in (True, False)]
        return sizes, make(6, dtype=lib.float64), make(6, dtype=lib.float16), make(4, requires_grad=True).requires_grad

    expected, actual = made(torch), made(gradwire)
    for e, a in zip(expected[0], actual[0], strict=True):
        assert e.tolist() == pytest.approx(a.tolist(), abs=1e-6)
    assert expected[1].tolist() == pytest.approx(actual[1].tolist(), abs=1e-12)
    assert expected[2].tolist() == pytest.approx(actual[2].tolist(), abs=1e-3)
    assert actual[3]


@claims
def a_window_of_negative_length(lib):
    return lib.hann_window(-1)


@claims
def a_window_of_whole_numbers(lib):
    return lib.hann_window(4, dtype=lib.int64)


@claims
def a_symmetric_window_has_no_other_centre(lib):
    return lib.signal.windows.exponential(5, center=1)


@claims
def a_window_that_decays_from_anywhere(lib):
    return lib.signal.windows.exponential(5, center=1, sym=False, tau=2.0)


# Calculus


@claims
def integrals_by_trapezoids(lib):
    y = (lib.arange(12.0) % 5).reshape(3, 4)
    x = lib.tensor([0.0, 1.0, 3.0, 3.5])
    grid = y.cumsum(1)
    return [
        lib.trapezoid(y), lib.trapezoid(y, x), lib.trapezoid(y, dx=0.5, dim=0), lib.trapz(y, grid, dim=1),
        lib.cumulative_trapezoid(y), lib.cumulative_trapezoid(y, x), lib.cumulative_trapezoid(y, dx=2, dim=0),
    ]  # fmt: skip


@claims
def slopes(lib):
    y = (lib.arange(20.0) ** 2 % 7).reshape(4, 5)
    at = lib.tensor([0.0, 1.0, 3.0, 3.5])
    return [
        lib.gradient(y), lib.gradient(y, spacing=2.0, dim=0), lib.gradient(y, spacing=[1.0, 2.0], edge_order=2),
        lib.gradient(y, spacing=(at,), dim=0, edge_order=2), lib.gradient(y, spacing=(at,), dim=0),
    ]  # fmt: skip


@claims
def slopes_have_gradients(lib):
    y = lib.tensor([1.0, 4.0, 9.0, 16.0], requires_grad=True)
    return lib.autograd.grad(lib.gradient(y)[0].square().sum(), y)


@claims
def too_few_points_for_a_slope(lib):
    return lib.gradient(lib.ones(2), edge_order=2)


@claims
def points_that_do_not_fit_the_values(lib):
    return lib.trapezoid(lib.ones(3), lib.ones(4))


# Histograms


@claims
def histograms(lib):
    x = lib.tensor([1.0, 2.0, 2.0, 4.0, 5.0])
    weight = lib.tensor([0.5, 1.0, 1.0, 1.0, 2.0])
    edges = lib.tensor([1.0, 2.0, 4.0])
    found = [
        lib.histogram(x, 4), lib.histogram(x, 3, range=(0.0, 3.0), density=True), lib.histogram(x, 4, weight=weight),
        lib.histogram(x, edges), x.histogram(edges, weight=weight, density=True),
    ]  # fmt: skip
    return [(h.hist, h.bin_edges) for h in found], lib.histc(x, 4), x.histc(3, 1, 4)


@claims
def histograms_of_points(lib):
    points = lib.tensor([[0.0, 1.0], [0.25, 0.5], [1.0, 0.0], [0.75, 0.25]])
    halves = lib.tensor([0.0, 0.5, 1.0])
    found = [
        lib.histogramdd(points, [2, 3]), lib.histogramdd(points, 2, density=True),
        lib.histogramdd(points, [halves, halves]), lib.histogramdd(points, [2, 2], range=[0.0, 1.0, 0.0, 2.0]),
    ]  # fmt: skip
    return [(h.hist, *h.bin_edges) for h in found]


@claims
def a_range_that_is_not_finite(lib):
    return lib.histc(lib.tensor([1.0, float("nan")]), 4)


@claims
def a_histogram_of_integers(lib):
    return lib.histogram(lib.tensor([1, 2]), 2).hist


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_claim(claim):
    same(claim)
