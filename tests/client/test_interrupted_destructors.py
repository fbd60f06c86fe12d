"""Ctrl-C during the deletion of a tensor is not lost, and the tensor is still released on the server."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

import gradwire
from gradwire._core.context.destructors import keep_interrupts
from gradwire._core.tensor.tensor import Tensor


def delete_interrupted(tensors: list[Any]) -> None:
    """Delete the tensor; the interrupt arrives as the destructor begins."""

    def trace(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code is Tensor.__del__.__code__ and event == "call":
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        tensors.clear()
    finally:
        sys.settrace(before)


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """As the program has it: the tests' runner has put a hook of its own in that place."""
    before = sys.unraisablehook
    keep_interrupts(Tensor.__del__)
    yield
    sys.unraisablehook = before


def test_the_interrupt_comes_again(session: Any) -> None:
    tensors = [gradwire.ones(3)]
    with pytest.raises(KeyboardInterrupt):
        delete_interrupted(tensors)
        for _ in range(2000):
            time.sleep(0.01)


def test_the_tensor_is_released(session: Any) -> None:
    before = session.memory()["live_bytes"]
    tensors = [gradwire.ones(1 << 20)]
    assert session.memory()["live_bytes"] >= before + (4 << 20)
    with pytest.raises(KeyboardInterrupt):
        delete_interrupted(tensors)
        for _ in range(2000):
            time.sleep(0.01)
    assert session.memory()["live_bytes"] < before + (4 << 20)


def test_other_errors_of_destructors_are_told_as_before(session: Any) -> None:
    told: list[Any] = []
    sys.unraisablehook = told.append
    keep_interrupts(Tensor.__del__)

    class Bad:
        def __del__(self) -> None:
            raise ValueError("bad")

    bad = [Bad()]
    bad.clear()
    assert [type(each.exc_value) for each in told] == [ValueError]
