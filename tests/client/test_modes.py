"""Grad modes: nested, as decorators, on generators, one setting per thread."""

from __future__ import annotations

import threading

import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")
BOTH = pytest.mark.parametrize("lib", [torch, gradwire], ids=["torch", "gradwire"])


@BOTH
def test_modes_nest_in_any_order(lib):
    seen = []
    with lib.no_grad():
        seen.append(lib.is_grad_enabled())
        with lib.enable_grad():
            seen.append(lib.is_grad_enabled())
            with lib.set_grad_enabled(False):
                seen.append(lib.is_grad_enabled())
            seen.append(lib.is_grad_enabled())
        seen.append(lib.is_grad_enabled())
    seen.append(lib.is_grad_enabled())
    assert seen == [False, True, False, True, False, True]


@BOTH
def test_set_grad_enabled_works_without_with(lib):
    lib.set_grad_enabled(False)
    try:
        assert not lib.is_grad_enabled()
    finally:
        lib.set_grad_enabled(True)
    assert lib.is_grad_enabled()


@BOTH
def test_decorators_with_and_without_parentheses(lib):
    @lib.no_grad
    def bare():
        return lib.is_grad_enabled()

    @lib.no_grad()
    def called():
        return lib.is_grad_enabled()

    @lib.set_grad_enabled(False)
    def chosen():
        return lib.is_grad_enabled()

    assert (bare(), called(), chosen(), lib.is_grad_enabled()) == (False, False, False, True)


@BOTH
def test_a_decorated_generator_runs_inside_and_its_consumer_outside(lib):
    @lib.no_grad()
    def values():
        yield lib.is_grad_enabled()
        yield lib.is_grad_enabled()

    assert [(inside, lib.is_grad_enabled()) for inside in values()] == [(False, True), (False, True)]


@BOTH
def test_an_exception_restores_the_mode(lib):
    with pytest.raises(KeyError), lib.no_grad():
        raise KeyError
    assert lib.is_grad_enabled()


@BOTH
def test_threads_have_modes_of_their_own(lib):
    seen = []
    with lib.no_grad():
        thread = threading.Thread(target=lambda: seen.append(lib.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


@BOTH
def test_inference_tensors_stay_out_of_backward(lib):
    weight = lib.ones(2, requires_grad=True)
    with lib.inference_mode():
        made = lib.ones(2) * 2
        assert made.is_inference() and not (weight * 2).requires_grad
    with pytest.raises(RuntimeError):
        (weight * made).sum().backward()
        weight.grad.tolist()
    with pytest.raises(RuntimeError):
        made.add_(1)
    with pytest.raises(RuntimeError):
        made.requires_grad_()
    made.clone().requires_grad_()


@BOTH
def test_in_place_on_a_leaf_is_allowed_in_no_grad(lib):
    weight = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        weight -= 0.5
    assert weight.is_leaf and weight.tolist() == [0.5, 0.5] and weight._version == 1


@BOTH
def test_anomaly_detection_names_the_node(lib):
    x = lib.tensor([0.0, 1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="SqrtBackward0"), lib.autograd.detect_anomaly():
        (lib.sqrt(x - 1) * 0).sum().backward()
        x.grad.tolist()
