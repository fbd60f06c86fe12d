"""Unusual tolerances of ``isclose`` and ``allclose``: PyTorch's result, or its error class."""

from __future__ import annotations

import math
from typing import Any, Final

import pytest
import torch
from tests.side_by_side import built_in

import gradwire

DTYPES: Final = ("bool", "int64", "float32", "complex64")
NUMBERS: Final = (0.0, 0.5, 1, 1e30, math.inf, -math.inf, math.nan, -1.0, 2**62)


def _answer(lib: Any, dtype: str, rtol: float, atol: float) -> Any:
    x = lib.tensor([0, 0, 1, 1]).to(getattr(lib, dtype))
    y = lib.tensor([0, 1, 0, 1]).to(getattr(lib, dtype))
    try:
        return lib.isclose(x, y, rtol=rtol, atol=atol)
    except Exception as error:
        return built_in(error)


@pytest.mark.parametrize("dtype", DTYPES)
def test_isclose_takes_them_as_pytorch_does(session: Any, dtype: str) -> None:
    cases = [(number, tolerance) for number in NUMBERS for tolerance in (0.0, 1e-8, math.inf)]
    for rtol, atol in [*cases, *(case[::-1] for case in cases)]:
        expected, found = (_answer(lib, dtype, rtol, atol) for lib in (torch, gradwire))
        assert isinstance(found, str) == isinstance(expected, str), (rtol, atol)
        if isinstance(found, str):
            assert found == expected, (rtol, atol)
        else:
            assert found.tolist() == expected.tolist(), (rtol, atol)
