"""NumPy's arithmetic by threads: NumPy's bits, for whatever operands, and called by plans of large arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradwire as torch
from gradwire_engine.kernels.cpu import threads
from gradwire_engine.plans import expressions, fusion
from gradwire_engine.runtime.arithmetic import BY_THREADS
from tests.engine.compiled_kernels import kernels
from tests.engine.recordings import record
from tests.engine.test_plans import repeated
from tests.engine.test_plans import same as same_as_on_the_tape

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

NAMES = ["add", "subtract", "multiply", "true_divide"]
RANDOM = np.random.default_rng(11)


def numbers(dtype: str, shape: tuple[int, ...] = (301, 130)) -> Any:
    x = RANDOM.standard_normal(shape).astype(dtype)
    x.reshape(-1)[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).tiny / 4]
    return x


def same(name: str, x: Any, y: Any) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
        for count in (1, 3):
            threads.use_threads(count)
            found = BY_THREADS[name](x, y)
            assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
            # Any NaN is NaN: which of two operands' it is, NumPy does not say either.
            assert np.array_equal(np.isnan(found), np.isnan(expected))
            there = ~np.isnan(expected)
            assert found[there].tobytes() == expected[there].tobytes()


def test_the_table_has_the_functions_that_plans_spell() -> None:
    assert sorted(BY_THREADS) == sorted(NAMES)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_arrays_and_numbers_give_the_bits_of_numpy(name: str, dtype: str) -> None:
    x, y = numbers(dtype), numbers(dtype)[::-1].copy()
    same(name, x, y)
    for number in (0.1, -3, 0, 1e300, float("nan"), float("inf"), True, 1 << 60):
        if dtype == "float32" and number == 1e300:
            continue  # NumPy warns of the overflow and rounds it the same way
        same(name, x, number)
        same(name, number, x)


@pytest.mark.parametrize("name", NAMES)
def test_other_operands_go_to_numpy(name: str) -> None:
    x = numbers("float32")
    same(name, x, x[:1])
    same(name, x, x.astype("d"))
    same(name, x, np.float32(0.5))
    same(name, x.T, x.T)
    same(name, x[:, ::2], x[:, 1::2])
    same(name, np.arange(1, 9), np.arange(1, 9))
    same(name, x.astype("F"), x.astype("F"))


def test_plans_call_them_for_large_arrays_and_leave_the_bits_of_the_tape(monkeypatch: Any) -> None:
    monkeypatch.setattr(expressions, "LARGE", 1)
    monkeypatch.setattr(fusion, "WORTH", 1 << 60)  # else it is one run
    called = []
    for name in NAMES:
        function = BY_THREADS[name]
        monkeypatch.setitem(BY_THREADS, name, lambda x, y, n=name, f=function: (called.append(n), f(x, y))[1])

    def step(number: int) -> None:
        x = torch.tensor(RANDOM.standard_normal((301, 130), dtype=np.float32).tolist(), requires_grad=True)
        made = ((x * x - x) / 3 + 2 * x) * number
        made.sum().backward()
        (made + x.grad).sum().item()

    same_as_on_the_tape(record(repeated(step)))
    assert set(called) == set(NAMES)
