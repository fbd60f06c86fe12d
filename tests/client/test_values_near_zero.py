"""Functions whose plain formula cancels, or divides by an underflowed square, have PyTorch's values there."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")

POINTS = (
    0.2 + 0.3j, 1e-19 + 1e-18j, 1e-18 + 0.1j, 0.1 + 1e-18j, 2 + 1j, -1 + 2j, -2j, -1 + 1e30j, 1e30 + 1e30j,
    1e-30 + 2e-30j, -1 + 0j, 0j, -2 + 0j, 0.5j, -0.5 + 0.1j, 1e-9 - 1e-9j, -1e-9 + 4e-5j, complex("inf"),
    complex("nan"),
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_log1p_keeps_its_digits(dtype: str) -> None:
    ours, theirs = (t.log1p(t.tensor(POINTS, dtype=getattr(t, dtype))) for t in (gradwire, torch))
    assert ours.dtype.name == dtype
    for part in ("real", "imag"):
        torch.testing.assert_close(
            torch.tensor(getattr(ours, part).tolist(), dtype=torch.float64), getattr(theirs, part).double(),
            rtol=1e-5 if dtype == "complex64" else 1e-12, atol=0, equal_nan=True,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sinc_has_a_gradient_where_the_square_of_its_argument_underflows(dtype: str) -> None:
    tiny = torch.finfo(getattr(torch, dtype)).tiny

    def slope(t: Any) -> list[float]:
        x = t.tensor([0.0, tiny, -tiny, math.sqrt(tiny) / 8, 0.25, 1.0], dtype=getattr(t, dtype), requires_grad=True)
        return t.autograd.grad(t.sinc(x).sum(), x)[0].tolist()

    assert slope(gradwire) == pytest.approx(slope(torch), rel=1e-5, abs=0)
