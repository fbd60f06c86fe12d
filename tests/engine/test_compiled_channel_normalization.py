"""Compiled batch and group norm against the NumPy kernels in double precision, and their gradients against torch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.kernels.cpu.kernels import channel_normalization
from tests.engine.compiled_kernels import close, compiled, declines, kernels, plain, same_bits_for_any_threads

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

SHAPES = [(1, 4, 8), (2, 8, 3, 3), (3, 4, 33), (5, 12, 4, 4), (2, 4, 5, 3, 2), (1, 2, 9001), (64, 4, 8)]
GROUPS = 4
EPS = 1e-3

Arrays = list[Any]
Make = Callable[..., Arrays]


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 2 + 0.5).astype(dtype)


def parameters(x: Any, there: bool) -> Arrays:
    return [numbers(x.shape[1:2], x.dtype.name, seed) if there else None for seed in (1, 2)]


def statistics(x: Any) -> Arrays:
    dims = tuple(i for i in range(x.ndim) if i != 1)
    return [x.mean(dims).astype(x.dtype), x.var(dims).astype(x.dtype)]


def group_statistics(x: Any, groups: int) -> Arrays:
    rows = x.reshape(x.shape[0] * groups, -1).astype("d")
    return [rows.mean(1, keepdims=True).astype(x.dtype), (rows.var(1, keepdims=True) + EPS).astype(x.dtype) ** -0.5]


def group_norm(x: Any, there: bool) -> Arrays:
    groups = min(GROUPS, x.shape[1])
    return [x, groups, *parameters(x, there), EPS]


def group_norm_backward(x: Any, there: bool) -> Arrays:
    groups = min(GROUPS, x.shape[1])
    return [numbers(x.shape, x.dtype.name, 3), x, *group_statistics(x, groups), groups, parameters(x, there)[0]]


CASES: dict[str, tuple[str, Make]] = {
    "training": ("batch_norm_training", lambda x, there: [x, *parameters(x, there), EPS]),
    "inference": ("batch_norm_inference", lambda x, there: [x, *statistics(x), *parameters(x, there), EPS]),
    **{
        f"backward of {mode}": (
            "batch_norm_backward",
            lambda x, there, training=mode == "training": [
                numbers(x.shape, x.dtype.name, 3), x, *statistics(x), parameters(x, there)[0], training, EPS
            ],
        )
        for mode in ("training", "inference")
    },
    "groups": ("group_norm", group_norm),
    "backward of groups": ("group_norm_backward", group_norm_backward),
}  # fmt: skip

each = pytest.mark.parametrize("case", CASES)


def tupled(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


@each
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("there", [True, False], ids=["weight and bias", "neither"])
def test_a_kernel_gives_what_numpy_gives_in_double_precision(
    case: str, shape: tuple[int, ...], dtype: str, there: bool
) -> None:
    name, make = CASES[case]
    arrays = make(numbers(shape, dtype), there)
    wide = [a.astype("d") if isinstance(a, np.ndarray) else a for a in arrays]
    expected = tuple(a.astype(dtype) for a in tupled(plain(name, *wide)))
    close(tupled(compiled(name, *arrays)), expected, 4 if dtype == "float32" else 20)


@each
def test_results_do_not_depend_on_the_number_of_threads(case: str) -> None:
    name, make = CASES[case]
    arrays = make(numbers((6, 12, 40, 41), "float32"), True)
    same_bits_for_any_threads(lambda: compiled(name, *arrays))


@each
def test_operands_may_have_any_strides(case: str) -> None:
    name, make = CASES[case]
    arrays = make(numbers((3, 8, 6, 5), "float32"), True)
    last = [
        a.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2) if isinstance(a, np.ndarray) and a.ndim == 4 else a
        for a in arrays
    ]
    close(compiled(name, *last), compiled(name, *arrays), 0)
    spread = [np.repeat(a, 2, 0)[::2] if isinstance(a, np.ndarray) else a for a in arrays]
    close(compiled(name, *spread), compiled(name, *arrays), 0)


@each
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities_stay_in_their_channel(case: str, value: float) -> None:
    name, make = CASES[case]
    x = numbers((2, 8, 4, 4), "float32")
    for dirty in ("x", "g") if case.startswith("backward") else ("x",):
        arrays = make(x, True)
        at = 1 if case.startswith("backward") and dirty == "x" else 0
        arrays[at] = arrays[at].copy()
        arrays[at][1, 3, 2, 1] = value
        with np.errstate(all="ignore"):
            ours, theirs = tupled(compiled(name, *arrays)), tupled(plain(name, *arrays))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
            np.testing.assert_allclose(a[np.isfinite(a)], b[np.isfinite(b)], rtol=1e-4, atol=1e-4)


def test_a_large_mean_does_not_spoil_the_variance() -> None:
    x = numbers((4, 2, 70, 70), "float32") + np.float32(5000)
    _, mean, var = compiled("batch_norm_training", x, None, None, 1e-5)
    np.testing.assert_allclose(mean, x.astype("d").mean((0, 2, 3)), rtol=1e-7)
    np.testing.assert_allclose(var, x.astype("d").var((0, 2, 3)), rtol=1e-4)


@each
def test_short_channels_other_dtypes_and_nothing_are_left_to_numpy(case: str) -> None:
    name, make = CASES[case]
    short = channel_normalization.SHORTEST - 1
    assert declines(name, *make(numbers((2, 4, short), "float32"), True))
    assert declines(name, *make(numbers((2, 4, 16), "float16"), True))
    mixed = make(numbers((2, 4, 16), "float32"), True)
    at = max(i for i, a in enumerate(mixed) if isinstance(a, np.ndarray))
    mixed[at] = mixed[at].astype("d")
    assert declines(name, *mixed)
    with warnings.catch_warnings(action="ignore"):  # statistics of nothing
        assert declines(name, *make(np.empty((2, 4, 0), "float32"), True))


@pytest.mark.parametrize("op", ["batch_norm_training", "group_norm"])
@pytest.mark.parametrize("there", [True, False], ids=["weight and bias", "neither"])
def test_gradients_are_those_of_torch(op: str, there: bool) -> None:
    x, factor = numbers((3, 8, 4, 5), "float64"), numbers((3, 8, 4, 5), "float64", 4)
    given = [p for p in parameters(x, there) if p is not None]
    engine = Engine()
    engine.compiled = True
    ours = [engine.from_numpy(a, True) for a in (x, *given)]
    rest = ours[1:] or [None, None]
    between = [GROUPS] if op == "group_norm" else []
    made = engine.call(op, ours[0], *between, *rest, EPS)
    out = made[0] if type(made) is tuple else made
    engine.call("backward", [engine.call("sum", engine.call("mul", out, engine.from_numpy(factor)))], [None])

    theirs = [torch.tensor(a, requires_grad=True) for a in (x, *given)]
    weight, bias = theirs[1:] or [None, None]
    if op == "group_norm":
        expected = torch.nn.functional.group_norm(theirs[0], GROUPS, weight, bias, EPS)
    else:
        expected = torch.nn.functional.batch_norm(theirs[0], None, None, weight, bias, True, 0.1, EPS)
    (expected * torch.tensor(factor)).sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        assert other.grad is not None
        np.testing.assert_allclose(engine.to_numpy(one.grad), other.grad.numpy(), rtol=1e-9, atol=1e-11)
