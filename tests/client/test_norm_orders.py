"""A plan holds for every number of its structure, also where the kernel's way depends on the number."""

from __future__ import annotations

import pytest

import gradwire as gw


@pytest.mark.parametrize("dtype", [gw.float32, gw.float64, gw.complex64])
def test_every_order_of_a_norm_keeps_the_dtype(session, dtype) -> None:
    x = gw.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 4.0]]).to(dtype)
    found = [gw.linalg.vector_norm(x, order, dim=-1).tolist() for order in (6, 4, 2, 1, 0, 2, 0)]
    assert found[4] == found[6] == [2.0, 1.0]
    assert found[2] == found[5] == pytest.approx([5**0.5, 4.0])


@pytest.mark.parametrize("dtype", [gw.bool, gw.float32, gw.complex64])
def test_every_power_of_a_transposed_tensor_keeps_its_strides(session, dtype) -> None:
    """Views of it are read by these strides."""
    x = gw.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).to(dtype).t()
    rows = x.t().tolist()
    for exponent in (2.5, 2.5, 2.5, 2.5, 1.0, 3.0, -1.0, 0.0, 1.0):
        expected = [pytest.approx(number**exponent) for number in rows[1]]
        assert (x**exponent).t()[1].tolist() == expected


@pytest.mark.parametrize("op", [gw.floor_divide, gw.remainder, gw.fmod])
def test_a_quotient_of_no_dimension_can_be_written_whatever_the_divisor(session, op) -> None:
    """Among finite float32 numbers it is computed another way."""
    x = gw.tensor(7.5)
    for divisor in (0.0, 0.0, 0.0, 0.0, 2.0, 4.0):
        y = op(x, gw.tensor(divisor))
        before = y.item()
        y.add_(1)
        assert y.item() == pytest.approx(before + 1, nan_ok=True)
