"""Compiled sums at indices, sums along axes, running sums and transposed copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_protocol.errors import GradwireError
from tests.engine.compiled_kernels import close, compiled, declines, kernels, plain, same_bits_for_any_threads

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

GENERATOR = np.random.default_rng(13)
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


def _numbers(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return GENERATOR.standard_normal(shape).astype(dtype)


def _indices(extent: int, shape: tuple[int, ...]) -> Any:
    return GENERATOR.integers(0, extent, shape)


@DTYPES
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_add_up_where_indices_name_them(dim: int, dtype: str) -> None:
    x, index = _numbers((7, 9, 130), dtype), _indices(7, (23,))
    shape = list(x.shape)
    shape[dim] = 23
    source = _numbers(tuple(shape), dtype)
    theirs = torch.from_numpy(x).index_add(dim, torch.from_numpy(index), torch.from_numpy(source)).numpy()
    close(compiled("index_add", x, dim, index, source, 1), theirs, 3)
    target = x.copy()
    assert compiled("index_add_", target, dim, index, source, 1) is None
    close(target, theirs, 3)
    arguments = source, x.shape, dim, index
    close(compiled("index_select_backward", *arguments), plain("index_select_backward", *arguments), 3)


@DTYPES
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_elements_add_up_where_indices_name_them(dim: int, dtype: str) -> None:
    x = _numbers((5, 6, 70), dtype)
    shape = list(x.shape)
    shape[dim] = 31
    index, source = _indices(x.shape[dim], tuple(shape)), _numbers(tuple(shape), dtype)
    theirs = torch.from_numpy(x).scatter_add(dim, torch.from_numpy(index), torch.from_numpy(source)).numpy()
    close(compiled("scatter_add", x, dim, index, source), theirs, 3)
    target = x.copy()
    assert compiled("scatter_add_", target, dim, index, source) is None
    close(target, theirs, 3)
    arguments = source, x.shape, dim, index, False
    close(compiled("gather_backward", *arguments), plain("gather_backward", *arguments), 3)


@DTYPES
@pytest.mark.parametrize("padding", [-1, 4])
def test_gradients_of_tables_agree_with_pytorch(padding: int, dtype: str) -> None:
    g, indices = _numbers((6, 50, 33), dtype), _indices(11, (6, 50))
    theirs = torch.ops.aten.embedding_dense_backward(
        torch.from_numpy(g), torch.from_numpy(indices), 11, padding, False
    ).numpy()
    close(compiled("embedding_backward", g, indices, 11, padding, False), theirs, 3)


@pytest.mark.parametrize("bad", [-8, 7])
def test_an_index_outside_is_an_error_and_no_write(bad: int) -> None:
    index, rows = np.array([0, bad]), _numbers((2, 3))
    calls: list[Callable[[], Any]] = [
        lambda: compiled("index_add", _numbers((7, 3)), 0, index, rows, 1),
        lambda: compiled("index_select_backward", rows, (7, 3), 0, index),
        lambda: compiled("embedding_backward", rows, index, 7, -1, False),
        lambda: compiled("scatter_add", _numbers((7, 3)), 0, np.repeat(index[:, None], 3, 1), rows),
        lambda: compiled("gather_backward", rows, (7, 3), 0, np.repeat(index[:, None], 3, 1), False),
    ]
    for call in calls:
        with pytest.raises(GradwireError, match=f"index {bad}"):
            call()


@DTYPES
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((100, 130), (1,)), ((100, 130), (0,)), ((100, 130), None), ((9, 700, 3), (1,)), ((8, 5, 11, 13), (0, 2, 3)),
        ((3, 1, 4000), (1, 2)), ((70_001,), None), ((6, 7, 8, 50), (0, 2)), ((40, 600), (0, 1)),
    ],
)  # fmt: skip
def test_sums_and_means_are_pytorchs(shape: tuple[int, ...], dim: Any, dtype: str) -> None:
    x = _numbers(shape, dtype)
    axes = tuple(range(x.ndim)) if dim is None else dim
    exact = x.astype("float64")
    if shape == (6, 7, 8, 50):
        assert declines("sum", x, dim, False, None)
        return
    close(compiled("sum", x, dim, False, None), exact.sum(axes).astype(dtype), 3)
    close(compiled("mean", x, dim, False, None), exact.mean(axes).astype(dtype), 3)
    same_bits_for_any_threads(lambda: compiled("sum", x, dim, False, None))


def test_a_long_sum_keeps_what_single_precision_would_lose() -> None:
    x = np.full(3_000_000, 0.1, "float32")
    exact = float(x[0]) * x.size
    assert abs(float(compiled("sum", x, None, False, None)) / exact - 1) < 1e-6


def test_sums_of_what_is_not_finite() -> None:
    x = np.ones((64, 128), "float32")
    x[1, 3], x[2, 100], x[3, 7], x[3, 90] = np.nan, np.inf, np.inf, -np.inf
    found = compiled("sum", x, (1,), False, None)
    assert np.isnan(found[[1, 3]]).all()
    assert found[2] == np.inf
    assert (found[4:] == 128).all()


@DTYPES
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_sums_are_pytorchs(dim: int, dtype: str) -> None:
    x = _numbers((11, 130, 9), dtype)
    close(compiled("cumsum", x, dim, None), torch.from_numpy(x).cumsum(dim).numpy(), 3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "complex64"])
@pytest.mark.parametrize("shape", [(64, 64), (100, 77), (3, 20, 90), (2, 3, 130, 8), (1031, 9)])
def test_transposed_copies_are_exact(shape: tuple[int, ...], dtype: str) -> None:
    bits = GENERATOR.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)  # NaN of all kinds, too
    x = bits.view(dtype)[..., 0].copy().swapaxes(-1, -2)
    made = compiled("contiguous", x)
    assert made.flags.c_contiguous
    assert made.tobytes() == x.tobytes()


def test_what_numpy_copies_as_well_is_left_to_it() -> None:
    assert declines("contiguous", _numbers((64, 64)))
    assert declines("contiguous", _numbers((64, 4)).T)
    assert declines("contiguous", _numbers((8, 64, 64)).transpose(1, 0, 2))
    assert declines("contiguous", _numbers((64, 64)).astype(np.int16).T)


def test_threads_change_no_bit() -> None:
    rows, index = _numbers((5000, 300)), _indices(40, (5000,))
    same_bits_for_any_threads(lambda: compiled("embedding_backward", rows, index, 40, -1, False))
    same_bits_for_any_threads(lambda: compiled("cumsum", rows, 0, None))
    same_bits_for_any_threads(lambda: compiled("cumsum", rows, 1, None))
    same_bits_for_any_threads(lambda: compiled("contiguous", rows.T))
