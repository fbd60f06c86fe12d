"""Shapes with an extent of 0 whose other extents overflow, and 64-bit numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gradwire_engine.ops  # noqa: F401  (fills the registry)
from gradwire_engine.autograd.engine import Engine
from gradwire_protocol import dtypes
from gradwire_protocol.errors import ShapeError

HUGE = (1 << 62, 4, 0, 4)


@pytest.mark.parametrize(
    ("op", "arguments"),
    [("rand", (HUGE,)), ("randn", (HUGE,)), ("randint", (0, 5, HUGE)), ("zeros", (HUGE,)), ("full", (HUGE, 3))],
)
def test_an_empty_shape_that_nobody_can_count_is_refused(op, arguments):
    with pytest.raises(ShapeError):
        Engine().call(op, *arguments)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("number", [1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63)])
def test_a_number_of_64_bits_fills_a_tensor_of_floats(number, dtype):
    engine = Engine()
    x = engine.from_numpy(np.ones(3, np.float32))
    made = engine.call("full_like", x, number, dtype=dtypes.BY_NAME[dtype])
    found = float(engine.to_numpy(made).astype("d")[0])
    assert (
        found == float(np.float64(number).astype(np.float16)) if dtype == "float16" else abs(found / number - 1) < 4e-3
    )
