"""An op on many rows of operands is what the op is on each, the first time and from then on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradwire
from gradwire._core.dispatch.rows import RowRecorder
from gradwire_protocol.errors import ArgumentTypeError, ShapeError

ROUNDS = 3
"""The second call of a form writes its function, the third is the first to find it."""


def _rows(dtype: Any) -> list[tuple[Any, ...]]:
    random = np.random.default_rng(0)
    sizes = [3, 4, 3, 4, 3]
    return [tuple(gradwire.tensor(random.standard_normal(n)).to(dtype) for _ in range(3)) for n in sizes]


@pytest.mark.parametrize("dtype", [gradwire.float32, gradwire.float64, gradwire.complex64], ids=str)
@pytest.mark.parametrize("value", [0.5, 2, 1], ids=["float", "int", "the default"])
def test_rows_are_calls_one_by_one(dtype: Any, value: Any) -> None:
    recorder = RowRecorder("addcmul")
    rows = [(*row, value) for row in _rows(dtype)]
    for _ in range(ROUNDS):
        made = recorder.record(rows)
        for found, (one, first, second, factor) in zip(made, rows, strict=True):
            expected = gradwire.addcmul(one, first, second, value=factor)
            assert found.dtype is expected.dtype and gradwire.equal(found, expected)


def test_writes_change_each_first_operand_and_its_version() -> None:
    recorder = RowRecorder("mul_")
    targets = [gradwire.ones(2), gradwire.ones(3), gradwire.ones(2)]
    for number in range(1, ROUNDS + 1):
        assert recorder.record([(one, 2.0) for one in targets]) == targets
        assert [one._version for one in targets] == [number] * 3
        assert [one.tolist() for one in targets] == [[2.0**number] * len(one) for one in targets]


def test_a_number_of_another_type_is_another_form() -> None:
    recorder = RowRecorder("mul")
    whole = gradwire.tensor([1, 2])
    for _ in range(ROUNDS):
        assert [one.dtype for one in recorder.record([(whole, 2), (whole, 2.0), (whole, True)])] == [
            gradwire.int64, gradwire.float32, gradwire.int64,
        ]  # fmt: skip


def test_gradients_go_through_rows() -> None:
    recorder = RowRecorder("mul")
    for _ in range(ROUNDS):
        x = gradwire.ones(2, requires_grad=True)
        made = recorder.record([(x, 3.0), (x, x)])
        (made[0] + made[1]).sum().backward()
        assert x.grad.tolist() == [5.0, 5.0]


def test_a_row_that_is_refused_leaves_those_before_it() -> None:
    recorder = RowRecorder("mul_")
    good, wrong = gradwire.ones(2), gradwire.ones(3)
    for number in range(1, ROUNDS + 1):
        with pytest.raises(ShapeError):
            recorder.record([(good, 2.0), (wrong, gradwire.ones(2)), (good, 2.0)])
        assert good.tolist() == [2.0**number] * 2 and wrong.tolist() == [1.0] * 3
    with pytest.raises(ArgumentTypeError):
        recorder.record([(good,)])


def test_the_default_dtype_of_now_counts() -> None:
    recorder = RowRecorder("mul")
    whole = gradwire.tensor([1, 2])
    for _ in range(ROUNDS):
        assert recorder.record([(whole, 2.0)])[0].dtype is gradwire.float32
    gradwire.set_default_dtype(gradwire.float64)
    try:
        assert recorder.record([(whole, 2.0)])[0].dtype is gradwire.float64
    finally:
        gradwire.set_default_dtype(gradwire.float32)


def test_new_tensors_take_the_fast_path_and_are_new() -> None:
    for _ in range(ROUNDS):
        first, second = gradwire.zeros(2), gradwire.zeros(2)
        first.add_(1)
        assert first.tolist() == [1.0, 1.0] and second.tolist() == [0.0, 0.0]
    gradwire.manual_seed(0)
    drawn = [gradwire.randn(2).tolist() for _ in range(ROUNDS)]
    assert len({tuple(one) for one in drawn}) == ROUNDS
    gradwire.manual_seed(0)
    assert [gradwire.randn(2).tolist() for _ in range(ROUNDS)] == drawn
