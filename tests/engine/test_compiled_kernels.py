"""Compiled kernels against NumPy's: equal within rounding for all layouts, sizes and special values, with the same bits
for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.kernels.cpu import threads
from gradwire_engine.runtime.casting import QUICK
from gradwire_protocol.errors import IndexOutOfRange
from tests.engine.compiled_kernels import kernels

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

Arrays = list[Any]
Make = Callable[[np.random.Generator, tuple[int, ...], str], Arrays]
"""Arguments of an op: arrays become tensors."""

CLASSES_LEFT_OUT = -100


@pytest.fixture(autouse=True)
def alone(monkeypatch: Any) -> Iterator[None]:
    from gradwire_engine.kernels.cpu.kernels import activation, cuts

    monkeypatch.setattr(activation, "SMALLEST", 0)
    monkeypatch.setattr(cuts, "WORTHWHILE", 0)
    threads.use_threads(1)
    yield
    threads.use_threads(0)


def numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str, scale: float = 2.0) -> Any:
    return (random.standard_normal(shape) * scale).astype(dtype)


def shares(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    found = np.exp(random.standard_normal(shape))
    return (found / found.sum(-1, keepdims=True)).astype(dtype)


def statistics(x: Any) -> tuple[Any, Any]:
    rows = x.reshape(-1, x.shape[-1]).astype("d")
    rstd = 1 / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    return rows.mean(1, keepdims=True).astype(x.dtype), rstd.astype(x.dtype)


def of_one(*rest: Any) -> Make:
    return lambda random, shape, dtype: [numbers(random, shape, dtype), *rest]


def of_two(*rest: Any) -> Make:
    return lambda random, shape, dtype: [numbers(random, shape, dtype), numbers(random, shape, dtype), *rest]


def with_shares(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
    return [numbers(random, shape, dtype), shares(random, shape, dtype), -1]


def with_logs(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
    return [numbers(random, shape, dtype), np.log(shares(random, shape, dtype)), -1]


def layer_norm(weight: bool, bias: bool) -> Make:
    def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
        parameters = [numbers(random, shape[-1:], dtype) if there else None for there in (weight, bias)]
        return [numbers(random, shape, dtype), shape[-1:], *parameters, 1e-5]

    return make


def layer_norm_backward(weight: bool, bias: bool) -> Make:
    def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
        x = numbers(random, shape, dtype)
        parameter = numbers(random, shape[-1:], dtype) if weight else None
        return [numbers(random, shape, dtype), x, *statistics(x), parameter, bias]

    return make


def rms_norm(weight: bool) -> Make:
    def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
        return [numbers(random, shape, dtype), shape[-1:], numbers(random, shape[-1:], dtype) if weight else None, None]

    return make


def rms_norm_backward(weight: bool) -> Make:
    def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
        x = numbers(random, shape, dtype)
        parameter = numbers(random, shape[-1:], dtype) if weight else None
        return [numbers(random, shape, dtype), x, statistics(x)[1], parameter]

    return make


def cross_entropy(reduction: str) -> Make:
    def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
        shape = (int(np.prod(shape[:-1])), shape[-1])
        target = random.integers(0, shape[1], shape[0])
        target[::3] = CLASSES_LEFT_OUT
        return [numbers(random, shape, dtype), target, None, CLASSES_LEFT_OUT, reduction, 0.0]

    return make


def cross_entropy_backward(mean: bool) -> Make:
    def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
        shape = (int(np.prod(shape[:-1])), shape[-1])
        target = random.integers(0, shape[1], shape[0])
        target[1::3] = 0
        g = numbers(random, () if mean else shape[:1], dtype)
        return [g, np.log(shares(random, shape, dtype)), target, None, 0, mean, 0.0]

    return make


def masked_fill(value: float) -> Make:
    def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Arrays:
        shape = shape if np.prod(shape) > 1 else (1, 2)
        return [numbers(random, (2, *shape), dtype), random.random(shape) < 0.4, value]

    return make


SINGLE, BOTH = ("float32",), ("float32", "float64")

CASES: dict[str, tuple[str, Make, tuple[str, ...]]] = {
    "softmax": ("softmax", of_one(-1, None), SINGLE),
    "log_softmax": ("log_softmax", of_one(-1, None), SINGLE),
    "softmax_backward": ("softmax_backward", with_shares, BOTH),
    "log_softmax_backward": ("log_softmax_backward", with_logs, SINGLE),
    "gelu": ("gelu", of_one("none"), SINGLE),
    "gelu by tanh": ("gelu", of_one("tanh"), SINGLE),
    "gelu_backward": ("gelu_backward", of_two("none"), SINGLE),
    "gelu_backward by tanh": ("gelu_backward", of_two("tanh"), SINGLE),
    "tanh": ("tanh", of_one(), SINGLE),
    "sigmoid": ("sigmoid", of_one(), SINGLE),
    "silu": ("silu", of_one(), SINGLE),
    "silu_backward": ("silu_backward", of_two(), SINGLE),
    "sigmoid_backward": ("sigmoid_backward", of_two(), BOTH),
    "tanh_backward": ("tanh_backward", of_two(), BOTH),
    "relu": ("relu", of_one(), BOTH),
    "relu6": ("relu6", of_one(), BOTH),
    "hardtanh": ("hardtanh", of_one(-0.5, 0.75), BOTH),
    "hardtanh_backward": ("hardtanh_backward", of_two(-0.5, 0.75), BOTH),
    "leaky_relu": ("leaky_relu", of_one(0.1), BOTH),
    "leaky_relu_backward": ("leaky_relu_backward", of_two(0.1), BOTH),
    "threshold_backward": ("threshold_backward", of_two(0.5), BOTH),
    "threshold_backward at zero": ("threshold_backward", of_two(0), BOTH),
    "layer_norm": ("layer_norm", layer_norm(True, True), BOTH),
    "layer_norm without bias": ("layer_norm", layer_norm(True, False), BOTH),
    "layer_norm without either": ("layer_norm", layer_norm(False, False), BOTH),
    "layer_norm_backward": ("layer_norm_backward", layer_norm_backward(True, True), BOTH),
    "layer_norm_backward without bias": ("layer_norm_backward", layer_norm_backward(True, False), BOTH),
    "layer_norm_backward without either": ("layer_norm_backward", layer_norm_backward(False, False), BOTH),
    "rms_norm": ("rms_norm", rms_norm(True), BOTH),
    "rms_norm without weight": ("rms_norm", rms_norm(False), BOTH),
    "rms_norm_backward": ("rms_norm_backward", rms_norm_backward(True), BOTH),
    "rms_norm_backward without weight": ("rms_norm_backward", rms_norm_backward(False), BOTH),
    "cross_entropy, mean": ("cross_entropy", cross_entropy("mean"), SINGLE),
    "cross_entropy, sum": ("cross_entropy", cross_entropy("sum"), SINGLE),
    "cross_entropy of each": ("cross_entropy", cross_entropy("none"), SINGLE),
    "cross_entropy_backward, mean": ("cross_entropy_backward", cross_entropy_backward(True), SINGLE),
    "cross_entropy_backward of each": ("cross_entropy_backward", cross_entropy_backward(False), SINGLE),
    "masked_fill": ("masked_fill", masked_fill(0.0), BOTH),
    "masked_fill with infinity": ("masked_fill", masked_fill(float("-inf")), BOTH),
}
EACH = [pytest.param(*CASES[name][:2], dtype, id=f"{name}, {dtype}") for name in CASES for dtype in CASES[name][2]]

SHAPES = [(1, 1), (5, 1), (1, 7), (3, 16), (2, 3, 33), (64, 96), (3, 1025)]
TOLERANCE = {"float32": 6e-6, "float64": 1e-13}


def by_kernel(name: str, arrays: Arrays) -> tuple[Any, ...]:
    """What the compiled kernel gives; that it applies is part of the claim."""
    with np.errstate(all="ignore"):
        found = row(name).compiled(np, *arrays)
    assert found is not NotImplemented
    return found if type(found) is tuple else (found,)


def by_numpy(name: str, arrays: Arrays) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        found = row(name).kernel(np, *arrays)
    return found if type(found) is tuple else (found,)


def widened(arrays: Arrays) -> Arrays:
    """The arguments in double precision: what NumPy makes of them has nearly no rounding of its own."""
    return [a.astype("d") if getattr(a, "dtype", None) == np.float32 else a for a in arrays]


def assert_close(found: tuple[Any, ...], expected: tuple[Any, ...], tolerance: float) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0)))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name, make, dtype", EACH)
def test_a_kernel_gives_what_numpy_gives_more_exactly(
    name: str, make: Make, dtype: str, shape: tuple[int, ...]
) -> None:
    arrays = make(np.random.default_rng(3), shape, dtype)
    found = by_kernel(name, arrays)
    assert all(f.dtype == dtype for f in found)
    assert_close(found, by_numpy(name, widened(arrays)), TOLERANCE[dtype] * (1 + np.log2(max(shape))))


@pytest.mark.parametrize("name, make, dtype", EACH)
def test_nan_and_infinities_behave_as_in_numpy(name: str, make: Make, dtype: str) -> None:
    """Wherever NumPy's kernel gives NaN or an infinity, so does the compiled one, and nowhere else."""
    random = np.random.default_rng(4)
    for value in (np.nan, np.inf, -np.inf, 1e4, -1e4):
        arrays = make(random, (6, 40), dtype)
        floats = [i for i, a in enumerate(arrays) if getattr(a, "dtype", None) == dtype and a.shape[-2:] == (6, 40)]
        first, last = arrays[floats[0]], arrays[floats[-1]]
        first[..., 0, 17] = last[..., 1, 39] = last[..., 2, :] = value
        found, expected = by_kernel(name, arrays), by_numpy(name, arrays)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                one, other, rtol=1e-4, atol=1e-4 * max(abs(value), 1) if np.isfinite(value) else 1e-4
            )


@pytest.mark.parametrize("name, make, dtype", EACH)
def test_results_do_not_depend_on_the_number_of_threads(name: str, make: Make, dtype: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(threads, "WORTH", 1)
    arrays = make(np.random.default_rng(5), (301, 130), dtype)
    found = []
    for count in (1, 2, 3):
        threads.use_threads(count)
        found.append(by_kernel(name, arrays))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert np.array_equal(np.atleast_1d(one).view(np.uint8), np.atleast_1d(other).view(np.uint8))


def engine(compiled: bool) -> Engine:
    made = Engine()
    made.compiled = compiled
    return made


LAYOUTS: dict[str, Callable[[Engine, Tensor], Tensor]] = {
    "transposed": lambda e, x: e.call("transpose", x, -1, -2),
    "every second": lambda e, x: e.call("slice", x, 1, 0, None, 2),
    "one column": lambda e, x: e.call("slice", x, 1, 3, 4, 1),
    "repeated": lambda e, x: e.call("expand", e.call("slice", x, 0, 0, 1, 1), (9, -1)),
    "shifted by one": lambda e, x: e.call("slice", x, 1, 1, None, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "name, rest", [("softmax", (-1,)), ("log_softmax", (0,)), ("gelu", ("none",)), ("silu", ()), ("rms_norm", None)]
)
def test_an_operand_may_have_any_strides(name: str, rest: Any, layout: str) -> None:
    values = numbers(np.random.default_rng(6), (24, 24), "float32")
    found = []
    for compiled in (True, False):
        e = engine(compiled)
        x = LAYOUTS[layout](e, e.from_numpy(values))
        result = e.call(name, x, *((x.shape[-1:], None, None) if rest is None else rest))
        found.append(e.to_numpy(result[0] if type(result) is tuple else result))
    assert found[0].strides == found[1].strides
    np.testing.assert_allclose(*found, rtol=3e-6, atol=3e-6)


def test_an_array_that_may_not_be_written_to_is_read() -> None:
    x = numbers(np.random.default_rng(7), (16, 32), "float32")
    x.setflags(write=False)
    assert_close(by_kernel("softmax", [x, -1, None]), by_numpy("softmax", [x, -1, None]), 3e-6)


def test_a_class_that_there_is_not_is_named() -> None:
    x = numbers(np.random.default_rng(8), (4, 5), "float32")
    with pytest.raises(IndexOutOfRange, match="a target of class 5 is outside the 5 classes"):
        by_kernel("cross_entropy", [x, np.array([0, 4, 5, 1]), None, CLASSES_LEFT_OUT, "mean", 0.0])


def test_where_no_sample_counts_the_mean_is_nan_and_its_gradient_zero() -> None:
    x, target = numbers(np.random.default_rng(9), (4, 5), "float32"), np.full(4, CLASSES_LEFT_OUT)
    loss, logs = by_kernel("cross_entropy", [x, target, None, CLASSES_LEFT_OUT, "mean", 0.0])
    assert np.isnan(loss)
    g = np.float32(1).reshape(())
    (slope,) = by_kernel("cross_entropy_backward", [g, logs, target, None, CLASSES_LEFT_OUT, True, 0.0])
    assert not slope.any()


def test_bounds_that_are_no_number_are_left_to_numpy() -> None:
    x = numbers(np.random.default_rng(12), (4, 5), "float32")
    for low, high in ((np.nan, 1.0), (0.0, np.nan)):
        assert row("hardtanh").compiled(np, x, low, high) is NotImplemented


# Gradients, by differences


def difference_quotients(function: Callable[[Any], float], x: Any, step: float = 1e-6) -> Any:
    found = np.empty_like(x)
    for at in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[at] += sign * step
            ends.append(function(moved))
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_gradients_are_limits_of_difference_quotients(name: str) -> None:
    random = np.random.default_rng(10)
    values = {
        "x": numbers(random, (5, 6), "d"),
        "weight": numbers(random, (6,), "d"),
        "bias": numbers(random, (6,), "d"),
    }
    if name == "rms_norm":
        del values["bias"]
    factor = numbers(random, (5, 6), "d")

    def run(e: Engine, operands: dict[str, Tensor]) -> Tensor:
        rest = [operands[n] for n in operands if n != "x"]
        out = e.call(name, operands["x"], (6,), *rest, 1e-5)
        return e.call("sum", e.call("mul", out[0] if type(out) is tuple else out, e.from_numpy(factor)))

    e = engine(True)
    operands = {n: e.from_numpy(v, True) for n, v in values.items()}
    e.call("backward", [run(e, operands)], [None])
    for n, operand in operands.items():

        def loss(moved: Any, n: str = n) -> float:
            fresh = engine(True)
            return float(
                fresh.to_numpy(run(fresh, {m: fresh.from_numpy(moved if m == n else v) for m, v in values.items()}))
            )

        np.testing.assert_allclose(
            e.to_numpy(operand.grad), difference_quotients(loss, values[n]), rtol=1e-6, atol=1e-7
        )


# Dropout


@pytest.mark.parametrize("size", [1, 7, 8, 9, 4095, 4096, 4097, 10_000])
@pytest.mark.parametrize("dtype", BOTH)
def test_dropout_draws_the_same_numbers(size: int, dtype: str) -> None:
    """To the last bit, and what is drawn next is the same, too."""
    values = numbers(np.random.default_rng(size), (size,), dtype)
    values[0] = np.nan
    found = []
    for compiled in (True, False):
        e = engine(compiled)
        e.generator.set_state(((1 << 64) - 5, 12345))
        out, kept = e.call("dropout", e.from_numpy(values), 0.3, True)
        found.append(
            (e.to_numpy(out).tobytes(), e.to_numpy(kept).tobytes(), e.to_numpy(e.call("rand", (3,))).tobytes())
        )
    assert found[0] == found[1]


# Optimizers


ADAM = {"weight_decay": 0.0, "amsgrad": False, "maximize": False, "decoupled_weight_decay": True}
SGD = {"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False, "maximize": False}


def adam(e: Engine, p: Tensor, states: list[Tensor], step: int, options: dict[str, Any]) -> None:
    largest = [states[2]] if options["amsgrad"] else [None]
    e.call("adam_step", [p], [states[0]], [states[1]], largest, 0.01, step=float(step), **options)


def sgd(e: Engine, p: Tensor, states: list[Tensor], step: int, options: dict[str, Any]) -> None:
    buffer = [states[0]] if options["momentum"] else [None]
    e.call("sgd_step", [p], buffer, 0.01, first=(step == 1,), **options)


STEPS = {
    "adam": (adam, ADAM | {"decoupled_weight_decay": False}),
    "adam with decay": (adam, ADAM | {"weight_decay": 0.1, "decoupled_weight_decay": False}),
    "adamw": (adam, ADAM | {"weight_decay": 0.1}),
    "adam with slow means": (adam, ADAM | {"beta1": 0.3, "beta2": 0.4}),
    "amsgrad, upwards": (adam, ADAM | {"amsgrad": True, "maximize": True}),
    "sgd": (sgd, SGD),
    "sgd with momentum": (sgd, SGD | {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    "sgd, nesterov, upwards": (sgd, SGD | {"momentum": 0.9, "nesterov": True, "maximize": True}),
}


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (100, 47), (2, 3000)], ids=str)
@pytest.mark.parametrize("name", STEPS)
def test_steps_are_those_of_numpy(name: str, shape: tuple[int, ...], dtype: str) -> None:
    step, options = STEPS[name]
    found = []
    for compiled in (True, False):
        random = np.random.default_rng(12)
        e = engine(compiled)
        p = e.from_numpy(numbers(random, shape, dtype), True)
        if len(shape) == 2:
            p = e.call("detach", e.call("transpose", p, 0, 1))
            p.requires_grad_flag = True
        states = [e.from_numpy(np.zeros(p.shape, dtype)) for _ in range(3)]
        for number in (1, 2, 3):
            p.grad = e.from_numpy(numbers(random, p.shape, dtype))
            step(e, p, states, number, options)
        found.append([e.to_numpy(t) for t in (p, *states)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype] * 4, atol=TOLERANCE[dtype])


def test_a_gradient_of_nan_reaches_parameter_and_largest_square() -> None:
    found = []
    for compiled in (True, False):
        e = engine(compiled)
        p = e.from_numpy(np.ones(4, "f"), True)
        p.grad = e.from_numpy(np.array([1, np.nan, np.inf, -2], "f"))
        states = [e.from_numpy(np.zeros(4, "f")) for _ in range(3)]
        adam(e, p, states, 1, ADAM | {"amsgrad": True})
        found.append([e.to_numpy(t) for t in (p, *states)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


# Casts


def test_casts_of_half_precision_are_numpys_to_the_last_bit() -> None:
    """All halves, and single precision numbers beside all that a rounding turns at; NaN of every kind among them."""
    single, half, brain = np.dtype("f"), np.dtype("e"), np.dtype(ml_dtypes.bfloat16)
    halves = np.arange(1 << 16, dtype=np.uint16)
    assert np.array_equal(QUICK[half, single](halves.view("e")).view("u4"), halves.view("e").astype("f").view("u4"))
    random = np.random.default_rng(13).integers(0, 1 << 32, 200_000, np.uint32)
    for narrow in (half, brain):
        turns = halves.view(narrow).astype("f").view("u4")
        middle = [turns + np.uint32(d) for d in (0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001)]
        values = np.concatenate([random, *middle]).view("f")
        with np.errstate(all="ignore"):
            assert np.array_equal(QUICK[single, narrow](values).view("u2"), values.astype(narrow).view("u2"))
