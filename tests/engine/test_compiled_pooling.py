"""Compiled pooling against PyTorch's and against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.ops.pooling import windows_of
from tests.engine.compiled_kernels import close, compiled, declines, kernels, plain, same_bits_for_any_threads

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

CASES: dict[str, Any] = {
    # input, kernel, stride, padding, dilation, ceil_mode
    "halves": ((2, 3, 8, 10), 2, None, 0, 1, False),
    "halves, wider than vectors": ((1, 2, 4, 70), 2, None, 0, 1, False),
    "a row left over": ((2, 3, 9, 11), 2, None, 0, 1, False),
    "overlapping": ((2, 3, 9, 11), 3, 2, 1, 1, False),
    "next to each other": ((2, 3, 9, 40), 3, 1, 1, 1, False),
    "dilation": ((2, 3, 9, 11), 3, 1, 1, 2, False),
    "stride 3": ((2, 3, 12, 50), (2, 3), 3, 1, 1, False),
    "up to the end": ((2, 3, 9, 11), (3, 2), (2, 1), 1, 1, True),
    "sequence": ((2, 3, 37), 3, 2, 1, 1, False),
    "volume": ((2, 3, 6, 7, 8), 2, 2, 1, 1, True),
}

GENERATOR = np.random.default_rng(5)


def _input(shape: tuple[int, ...], dtype: str, special: bool) -> Any:
    x = GENERATOR.integers(-4, 5, shape).astype(dtype)  # many are equal
    if special:
        x[GENERATOR.random(shape) < 0.1] = np.nan
        x[GENERATOR.random(shape) < 0.1] = np.inf
        x[GENERATOR.random(shape) < 0.3] = -np.inf
    return x


def _gradient(x: Any, out: Any, case: Any) -> tuple[Any, ...]:
    shape, kernel, stride, padding, dilation, ceil = case
    windows = windows_of(len(shape) - 2, shape, kernel, stride, padding, dilation, ceil)
    g = GENERATOR.standard_normal(out.shape).astype(x.dtype)
    return g, x, out, windows.kernel, windows.stride, windows.padding, windows.dilation


@pytest.mark.parametrize("special", [False, True], ids=["finite", "special values"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_maxima_and_where_they_are_agree_with_pytorch(name: str, dtype: str, special: bool) -> None:
    shape, *arguments = CASES[name]
    count, x = len(shape) - 2, _input(shape, dtype, special)
    kernel, stride, padding, dilation, ceil = arguments
    pool = getattr(torch.nn.functional, f"max_pool{count}d")
    theirs, places = pool(torch.from_numpy(x), kernel, stride, padding, dilation, ceil, return_indices=True)
    close(compiled(f"max_pool{count}d", x, *arguments), theirs.numpy())
    close(compiled(f"max_pool{count}d_with_indices", x, *arguments), (theirs.numpy(), places.numpy()))


@pytest.mark.parametrize("special", [False, True], ids=["finite", "special values"])
@pytest.mark.parametrize("name", CASES)
def test_a_gradient_goes_to_the_first_maximum_as_with_numpy(name: str, special: bool) -> None:
    case = CASES[name]
    x = _input(case[0], "float64", special)
    out = plain(f"max_pool{len(case[0]) - 2}d", x, *case[1:])
    arguments = _gradient(x, out, case)
    close(compiled("max_pool_backward", *arguments), plain("max_pool_backward", *arguments))


@pytest.mark.parametrize("size", [(4, 6), (9, 9)])
def test_an_infinite_gradient_leaves_what_is_no_maximum_alone(size: tuple[int, int]) -> None:
    x = GENERATOR.standard_normal((1, 1, *size))
    out = plain("max_pool2d", x, 2, 2, 0, 1, False)
    g = np.full(out.shape, np.inf)
    made = compiled("max_pool_backward", g, x, out, (2, 2), (2, 2), (0, 0), (1, 1))
    assert np.isinf(made).sum() == g.size
    assert (made[~np.isinf(made)] == 0).all()


@pytest.mark.parametrize("padded", [True, False], ids=["padding counts", "padding does not count"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "dilation"])
def test_means_and_their_gradients_are_pytorchs(name: str, padded: bool) -> None:
    shape, kernel, stride, padding, _, ceil = CASES[name]
    count = len(shape) - 2
    x = GENERATOR.standard_normal(shape)
    leaf: Any = torch.from_numpy(x).requires_grad_()
    theirs = getattr(torch.nn.functional, f"avg_pool{count}d")(leaf, kernel, stride, padding, ceil, padded)
    rest = (None,) if count > 1 else ()
    close(compiled(f"avg_pool{count}d", x, kernel, stride, padding, ceil, padded, *rest), theirs.detach().numpy())
    g = GENERATOR.standard_normal(theirs.shape)
    theirs.backward(torch.from_numpy(g))
    windows = windows_of(count, shape, kernel, stride, padding, 1, ceil)
    geometry = (windows.extents, windows.kernel, windows.stride, windows.padding)
    close(compiled("avg_pool_backward", g, *geometry, padded, None), leaf.grad.numpy())


def test_a_divisor_that_is_given_is_taken() -> None:
    x = GENERATOR.standard_normal((2, 3, 8, 10))
    for divisor in (3, -7):
        theirs = torch.nn.functional.avg_pool2d(torch.from_numpy(x), 2, 2, divisor_override=divisor)
        close(compiled("avg_pool2d", x, 2, 2, 0, False, True, divisor), theirs.numpy())


def test_threads_change_no_bit() -> None:
    x = GENERATOR.standard_normal((16, 16, 24, 24)).astype("float32")
    for kernel in (2, 3):
        same_bits_for_any_threads(lambda kernel=kernel: compiled("max_pool2d", x, kernel, 2, 0, 1, False))
        same_bits_for_any_threads(lambda kernel=kernel: compiled("avg_pool2d", x, kernel, 2, 0, False, True, None))


def test_integers_are_left_to_numpy() -> None:
    assert declines("max_pool2d", np.ones((1, 1, 4, 4), np.int64), 2, 2, 0, 1, False)
