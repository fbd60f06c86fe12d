"""Anomaly mode: a backward error names the operation and the program line that it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import gradwire

HERE = str(Path(__file__))
BOTH = (torch, gradwire)

pytestmark = pytest.mark.filterwarnings("ignore:.*nomaly")


def roots_of_zero() -> Any:
    x = gradwire.zeros(2, requires_grad=True)
    return (x.sqrt() * 0).sum()  # the line to be named


ROOT_LINE = f"{HERE}:{roots_of_zero.__code__.co_firstlineno + 2}"


def test_nan_in_a_gradient_names_the_line_of_the_operation(session) -> None:
    with gradwire.autograd.detect_anomaly(), pytest.raises(RuntimeError) as caught:
        roots_of_zero().backward()
    told = str(caught.value)
    assert "SqrtBackward0 returned NaN" in told
    assert f"SqrtBackward0 was recorded at {ROOT_LINE}" in told
    assert "the line to be named" in told
    assert caught.value.details["node"] == "SqrtBackward0"


def test_the_line_is_known_when_the_operation_was_sent_long_before(session) -> None:
    y = roots_of_zero()
    for _ in range(3):
        session.synchronize()
    with gradwire.autograd.detect_anomaly(), pytest.raises(RuntimeError) as caught:
        y.backward()
    assert ROOT_LINE in str(caught.value)


def test_the_line_is_that_of_the_write_for_a_slice_written_in_place(session) -> None:
    x = gradwire.zeros(3, requires_grad=True)
    y = x.clone()
    y[0].sqrt_()
    with gradwire.autograd.detect_anomaly(), pytest.raises(RuntimeError) as caught:
        (y * 0).sum().backward()
    line = test_the_line_is_that_of_the_write_for_a_slice_written_in_place.__code__.co_firstlineno + 3
    assert f"CopySlices was recorded at {HERE}:{line}" in str(caught.value)


def first_of_grad(lib: Any) -> Any:
    x = lib.zeros(2, requires_grad=True)
    lib.autograd.grad((x.sqrt() * 0).sum(), x)


def with_a_hook(lib: Any) -> Any:
    x = lib.zeros(2, requires_grad=True)
    y = x.sqrt()
    y.register_hook(lambda g: g * 1)
    (y * 0).sum().backward()


def to_an_input(lib: Any) -> Any:
    x = lib.zeros(2, requires_grad=True)
    (x.sqrt() * 0).sum().backward(inputs=[x])


def of_a_number_that_is_none(lib: Any) -> Any:
    x = lib.zeros(2, requires_grad=True)
    (x.sqrt() * lib.tensor(float("nan"))).sum().backward()


@pytest.mark.parametrize("program", [first_of_grad, with_a_hook, to_an_input, of_a_number_that_is_none])
def test_backward_itself_raises(session, program: Any) -> None:
    for lib in BOTH:
        with lib.autograd.detect_anomaly(), pytest.raises(RuntimeError):
            program(lib)
    session.synchronize()


def test_without_check_nan_nothing_is_looked_for(session) -> None:
    with gradwire.autograd.detect_anomaly(check_nan=False):
        roots_of_zero().backward()
        session.synchronize()


def test_a_derivative_that_fails_names_its_line(session) -> None:
    x = gradwire.ones(2, requires_grad=True)
    y = x // 2.0
    with gradwire.autograd.detect_anomaly(check_nan=False), pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    line = test_a_derivative_that_fails_names_its_line.__code__.co_firstlineno + 2
    assert f"recorded at {HERE}:{line}" in str(caught.value)


def test_entering_warns_as_pytorch_does() -> None:
    for lib in BOTH:
        with pytest.warns(UserWarning, match="(?i)anomaly detection"):
            lib.autograd.detect_anomaly()
    with pytest.warns(UserWarning, match="(?i)anomaly detection") as caught:
        gradwire.autograd.detect_anomaly()
    assert caught[0].filename == HERE


def flags(lib: Any) -> tuple[bool, bool]:
    return lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()


def test_whether_it_is_on() -> None:
    for lib in BOTH:
        assert flags(lib) == (False, True)
        with lib.autograd.detect_anomaly():
            assert flags(lib) == (True, True)
            with lib.autograd.detect_anomaly(check_nan=False):
                assert flags(lib) == (True, False)
            with lib.autograd.set_detect_anomaly(False):
                assert flags(lib) == (False, True)
            assert flags(lib) == (True, True)
        assert flags(lib) == (False, True)
        mode = lib.autograd.set_detect_anomaly(True)
        assert flags(lib) == (True, True)
        with mode:
            assert flags(lib) == (True, True)
        assert flags(lib) == (False, True)


def test_set_detect_anomaly_as_a_decorator() -> None:
    @gradwire.autograd.set_detect_anomaly(True)
    def inside() -> tuple[bool, bool]:
        return flags(gradwire)

    assert flags(gradwire) == (False, True)
    assert inside() == (True, True)
    assert flags(gradwire) == (False, True)
