"""Jacobians, Hessians and products over the wire, against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire
from gradwire.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

pytestmark = pytest.mark.usefixtures("session")
BOTH = pytest.mark.parametrize("lib", [torch, gradwire], ids=["torch", "gradwire"])
X = np.array([0.5, -1.0, 2.0])
Y = np.array([1.5, 0.25, -0.5])


def plain(value):
    """Nested tuples of tensors as nested tuples of (shape, values)."""
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return tuple(value.shape), np.asarray(value.detach().numpy()).round(9).tolist()


def both(name, func, *arrays, **options):
    answers = []
    for lib in (torch, gradwire):
        args = [tuple(lib.tensor(a) for a in x) if isinstance(x, tuple) else lib.tensor(x) for x in arrays]
        answers.append(plain(getattr(lib.autograd.functional, name)(func, *args, **options)))
    return answers


JACOBIANS = {
    "one to one": (lambda x: x.exp() * x.sum(), X),
    "to a scalar": (lambda x: (x**3).sum(), X),
    "linear": (lambda x: 2 * x, X),
    "two to two": (lambda x, y: (x * y, (x * x).sum()), (X, Y)),
    "an unused input": (lambda x, y: x * 2, (X, Y)),
    "constant": (lambda x: x.detach() * 2, X),
    "a tuple of one": (lambda x: (x * x,), (X,)),
    "a matrix": (lambda x: x @ x, np.arange(4.0).reshape(2, 2)),
    "the input itself": (lambda x: x, X),
}


@pytest.mark.parametrize("case", JACOBIANS)
@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobian(case, vectorize):
    func, inputs = JACOBIANS[case]
    expected, found = both("jacobian", func, inputs, vectorize=vectorize)
    assert found == expected


SCALARS = {
    "cubic": (lambda x: (x**3).sum(), X),
    "linear": (lambda x: (2 * x).sum(), X),
    "half linear": (lambda x, y: (x * x).sum() + (3 * y).sum(), (X, Y)),
    "two inputs": (lambda x, y: (x * y).sum() * x.sum(), (X, Y)),
    "an unused input": (lambda x, y: (x * x).sum(), (X, Y)),
    "constant": (lambda x: x.detach().sum(), X),
    "one element, not 0-dim": (lambda x: (x**4).sum().reshape(1, 1), X),
}


@pytest.mark.parametrize("case", SCALARS)
def test_hessian(case):
    func, inputs = SCALARS[case]
    expected, found = both("hessian", func, inputs)
    assert found == expected


@pytest.mark.parametrize("name", ["hvp", "vhp", "jvp"])
@pytest.mark.parametrize("case", SCALARS)
def test_products(name, case):
    func, inputs = SCALARS[case]
    expected, found = both(name, func, inputs, inputs)
    assert found == expected


@pytest.mark.parametrize("name", ["vjp", "jvp"])
def test_products_with_several_outputs(name):
    expected, found = both(name, lambda x, y: (x * y, x.exp()), (X, Y), (Y, X))
    assert found == expected


def test_v_may_be_left_out_for_one_element():
    for name in ("vjp", "jvp", "hvp", "vhp"):
        expected, found = both(name, lambda x: x**3, np.array(2.0))
        assert found == expected


@pytest.mark.parametrize("name", ["vjp", "jvp"])
def test_complex(name):
    z = np.array([1 + 2j, -0.5j])
    expected, found = both(name, lambda x: x * x.conj() * x, z, z * 1j)
    assert found == expected


def test_complex_jacobian_needs_vectorize():
    z = np.array([1 + 2j, -0.5j])
    expected, found = both("jacobian", lambda x: x * x, z, vectorize=True)
    assert found == expected
    for lib in (torch, gradwire):
        with pytest.raises(RuntimeError):
            lib.autograd.functional.jacobian(lambda x: x * x, lib.tensor(z))


@BOTH
def test_results_are_differentiable_on_request(lib):
    x = lib.tensor(X, requires_grad=True)
    lib.autograd.functional.jacobian(lambda t: t**3, x, create_graph=True).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * X)
    for name in ("hvp", "vhp"):
        _, product = getattr(lib.autograd.functional, name)(lambda t: (t**3).sum(), x, lib.tensor(Y), create_graph=True)
        np.testing.assert_allclose(lib.autograd.grad(product.sum(), x)[0].numpy(), 6 * Y)
    assert not lib.autograd.functional.jacobian(lambda t: t**3, x).requires_grad


@BOTH
def test_gradients_elsewhere_are_left_alone(lib):
    x, w = lib.tensor(X, requires_grad=True), lib.tensor(Y, requires_grad=True)
    lib.autograd.functional.hessian(lambda t: (t**3 * w).sum(), x)
    assert x.grad is None
    assert w.grad is None


STRICT = {
    "vjp, independent": ("vjp", lambda x, y: x * 2, (X, Y), X),
    "vjp, detached": ("vjp", lambda x: x.detach(), X, X),
    "vjp, fine": ("vjp", lambda x: x * 2, X, X),
    "jvp, fine": ("jvp", lambda x: x * x, X, X),
    "jvp, detached": ("jvp", lambda x: x.detach(), X, X),
    "jvp, one input unused": ("jvp", lambda x, y: x * x, (X, Y), (X, Y)),
    "hvp, linear": ("hvp", lambda x: (2 * x).sum(), X, X),
    "hvp, fine": ("hvp", lambda x: (x**3).sum(), X, X),
    "vhp, linear": ("vhp", lambda x: (2 * x).sum(), X, X),
    "vhp, fine": ("vhp", lambda x: (x**3).sum(), X, X),
    "jacobian, independent": ("jacobian", lambda x, y: x * 2, (X, Y)),
    "jacobian, fine": ("jacobian", lambda x: x * 2, X),
    "hessian, linear": ("hessian", lambda x: (2 * x).sum(), X),
    "hessian, fine": ("hessian", lambda x: (x**3).sum(), X),
    "hessian, half linear": ("hessian", lambda x, y: (x * x).sum() + (3 * y).sum(), (X, Y)),
}


@pytest.mark.parametrize("case", STRICT)
def test_strict(case):
    name, func, *arrays = STRICT[case]
    outcomes = []
    for lib in (torch, gradwire):
        args = [tuple(lib.tensor(a) for a in x) if isinstance(x, tuple) else lib.tensor(x) for x in arrays]
        try:
            outcomes.append(plain(getattr(lib.autograd.functional, name)(func, *args, strict=True)))
        except RuntimeError:
            outcomes.append(RuntimeError)
    assert outcomes[1] == outcomes[0]


@BOTH
@pytest.mark.parametrize("name", ["vjp", "jvp", "hvp", "vhp"])
@pytest.mark.parametrize("v, error", [(None, RuntimeError), ([1.0], RuntimeError), (3, TypeError)])
def test_a_wrong_v_is_refused(lib, name, v, error):
    product = getattr(lib.autograd.functional, name)
    func = (lambda x: x * x) if name in ("vjp", "jvp") else (lambda x: (x * x).sum())
    v = lib.tensor(v, dtype=lib.float64) if isinstance(v, list) else v
    with pytest.raises(error):
        product(func, lib.tensor(X), v)
    with pytest.raises(RuntimeError):
        product(func, lib.tensor(X), (lib.tensor(X), lib.tensor(X)))


@BOTH
def test_wrong_arguments_are_refused(lib):
    f = lib.autograd.functional
    x = lib.tensor(X)
    for call in (lambda: f.jacobian(lambda t: t, 1.0), lambda: f.jacobian(lambda t: 1.0, x), lambda: f.vjp(abs, [x])):
        with pytest.raises(TypeError):
            call()
    for call in (lambda: f.hessian(lambda t: t, x), lambda: f.hessian(lambda t: (t.sum(),), x)):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(RuntimeError):
        f.jacobian(lambda t: t * t, x, strict=True, vectorize=True)
    with pytest.raises(AssertionError):
        f.jacobian(lambda t: t * t, x, strategy="sideways")


def test_forward_mode_without_vectorize_is_refused():
    x = gradwire.tensor(X)
    with pytest.raises(NotImplementedError, match="forward-mode"):
        jacobian(lambda t: t, x, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="outer_jacobian_strategy"):
        hessian(lambda t: t.sum(), x, outer_jacobian_strategy="forward-mode")


@pytest.mark.parametrize("product", [vjp, jvp, hvp, vhp])
def test_a_product_is_one_round_trip(product, round_trips):
    x, v = gradwire.tensor(X), gradwire.tensor(Y)
    func = (lambda t: t**3) if product in (vjp, jvp) else (lambda t: (t**3).sum())
    round_trips()
    _, found = product(func, x, v)
    assert round_trips() == 0
    found.numpy()
    assert round_trips() == 1


def test_a_hessian_is_one_round_trip(round_trips):
    x = gradwire.tensor(X)
    round_trips()
    hessian(lambda t: (t**3).sum(), x).numpy()
    assert round_trips() == 1
