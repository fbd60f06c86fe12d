"""Results of the CUDA kernels on a CPU: each op on emulated kernels against the same op on NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.backends import Backends
from tests.cuda_emulation import AVAILABLE, EmulatedBackend, Kernel

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="needs g++")

FINE = {"float32": 2e-6, "float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}
HALF = ("float16", "bfloat16")


def draw(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0, positive: bool = False) -> np.ndarray:
    values = np.random.default_rng(seed + 31 * len(shape)).standard_normal(shape)
    return np.asarray(np.abs(values) + 0.1 if positive else values).astype(
        ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    )


class Pair:
    """An engine on NumPy and one on emulated kernels."""

    def __init__(self, seed: int = 7) -> None:
        self.plain = Engine(seed=seed)
        self.device = Engine(backends=Backends(cpu=EmulatedBackend()), seed=seed)

    def call(self, name: str, *args: Any, grad: bool = True, launches: bool = True, tol: float | None = None,
             **kwargs: Any) -> list[np.ndarray]:  # fmt: skip
        """Run an op with its gradients on both, and compare; the emulated results."""
        made = []
        for engine in (self.plain, self.device):
            before = Kernel.launches
            leaves: dict[int, Tensor] = {}

            def convert(value: Any, engine: Engine = engine, leaves: dict[int, Tensor] = leaves) -> Any:
                if not isinstance(value, np.ndarray):
                    return value
                if id(value) not in leaves:
                    floating = value.dtype.kind == "f" or value.dtype == ml_dtypes.bfloat16
                    leaves[id(value)] = engine.from_numpy(value, requires_grad=grad and floating)
                return leaves[id(value)]

            found = engine.call(name, *[convert(a) for a in args], **{k: convert(v) for k, v in kwargs.items()})
            outs = list(found) if isinstance(found, tuple) else [found]
            if engine is self.device:
                assert (Kernel.launches > before) == launches, f"{name} launched {Kernel.launches - before}"
            wanted = [leaf for leaf in leaves.values() if leaf.requires_grad]
            if grad and wanted and outs[0].requires_grad:
                before = Kernel.launches
                seeds = [engine.from_numpy(draw(outs[0].shape, outs[0].dtype.name, 5))]
                engine.grad_enabled = False
                outs += [g for g in engine.call("grad", outs[:1], wanted, seeds, allow_unused=True) if g is not None]
                engine.grad_enabled = True
            made.append([(engine.to_numpy(o), o.dtype.name, o.meta.stride) for o in outs])
        for i, ((a, dtype, stride), (b, other, steps)) in enumerate(zip(*made, strict=True)):
            assert (dtype, stride) == (other, steps), f"{name}, result {i}"
            rtol = tol or FINE.get(dtype, 0)
            wide = np.float64 if rtol else None
            np.testing.assert_allclose(
                b.astype(wide) if wide else b, a.astype(wide) if wide else a, rtol=rtol * 4, atol=rtol * 2,
                err_msg=f"{name}, result {i}",
            )  # fmt: skip
        return [b for b, *_ in made[1]]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 130), (1, 1), (2, 1100)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_softmax_of_rows(pair: Pair, name: str, shape: tuple[int, ...], dtype: str) -> None:
    pair.call(name, draw(shape, dtype), -1)


def test_a_softmax_along_another_dimension_takes_the_general_way(pair: Pair) -> None:
    pair.call("softmax", draw((3, 5)), 0, grad=False, launches=False)


def test_infinities_and_nan_pass_a_softmax_as_they_do_on_numpy(pair: Pair) -> None:
    x = draw((4, 40))
    x[0, 3], x[1, 2], x[2], x[3, 1] = np.inf, np.nan, -np.inf, -np.inf
    pair.call("softmax", x, -1, grad=False)
    pair.call("log_softmax", x, -1, grad=False)


@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("shape", [(3, 5), (2, 70, 33)])
@pytest.mark.parametrize("parameters", [0, 1, 2])
def test_layer_norm(pair: Pair, shape: tuple[int, ...], parameters: int, dtype: str) -> None:
    weight = draw(shape[-1:], dtype, 1) if parameters else None
    bias = draw(shape[-1:], dtype, 2) if parameters > 1 else None
    pair.call("layer_norm", draw(shape, dtype), shape[-1:], weight, bias, 1e-5, tol=FINE[dtype] * 8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(6, 3), (2, 5, 7), (3, 4, 9, 11), (1, 2, 1, 1500)])
@pytest.mark.parametrize("parameters", [0, 1, 2])
def test_batch_norm(pair: Pair, shape: tuple[int, ...], parameters: int, dtype: str) -> None:
    weight = draw(shape[1:2], dtype, 1) if parameters else None
    bias = draw(shape[1:2], dtype, 2) if parameters > 1 else None
    x = draw(shape, dtype) + np.asarray(3, dtype)
    pair.call("batch_norm_training", x, weight, bias, 1e-5, tol=FINE[dtype] * 40)
    g, mean, var = draw(shape, dtype, 3), draw(shape[1:2], dtype, 4), draw(shape[1:2], dtype, 5, positive=True)
    for training in (True, False):
        pair.call("batch_norm_backward", g, x, mean, var, weight, training, 1e-5, grad=False, tol=FINE[dtype] * 40)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("terms", [0, 1, 127, 128, 129, 1000])
@pytest.mark.parametrize("places", [1, 3, 500])
def test_terms_are_added_in_order_at_the_places_they_name(pair: Pair, places: int, terms: int, dtype: str) -> None:
    index = np.random.default_rng(terms).integers(0, places, terms)
    target, values = draw((places,), "float32").astype(dtype), draw((terms,), "float32", 1).astype(dtype)
    engine = pair.device
    before = Kernel.launches
    found = engine.call("index_add", engine.from_numpy(target), 0, engine.from_numpy(index), engine.from_numpy(values))
    assert (Kernel.launches > before) == (terms > 0)
    wanted = target.astype("complex128" if dtype == "complex64" else "float64")
    np.add.at(wanted, index, values)
    tolerance = {"float16": 2e-2, "float64": 1e-12}.get(dtype, 1e-4)
    np.testing.assert_allclose(engine.to_numpy(found), wanted, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize(("shape", "cols"), [((5,), 3), ((6, 70), 40), ((2, 3, 4), 300)])
def test_the_gradient_of_an_embedding(pair: Pair, shape: tuple[int, ...], cols: int, padding: int, dtype: str) -> None:
    indices = np.random.default_rng(0).integers(0, 7, shape)
    pair.call("embedding_backward", draw((*shape, cols), dtype), indices, 9, padding, False, tol=FINE[dtype] * 8)
    if shape == (5,):
        pair.call("embedding_backward", draw((5, 3)), indices, 9, padding, True, grad=False)


def test_the_gradient_of_an_embedding_of_a_part_of_a_longer_text(pair: Pair) -> None:
    """A slice has strides, which the kernel does not take: it is copied, not declined."""
    engine = pair.device
    text = engine.from_numpy(np.random.default_rng(0).integers(0, 7, (6, 9)))
    tokens = engine.call("slice", text, 1, 0, 8)
    g = draw((6, 8, 5))
    before = Kernel.launches
    found = engine.call("embedding_backward", engine.from_numpy(g), tokens, 9, -1, False)
    assert Kernel.launches > before
    wanted = np.zeros((9, 5), g.dtype)
    np.add.at(wanted, engine.to_numpy(tokens), g)
    np.testing.assert_allclose(engine.to_numpy(found), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "dim"), [((40, 5), 0), ((8, 70, 130), (0, 1)), ((33, 2, 3), (0,))])
def test_a_sum_over_leading_dimensions(pair: Pair, shape: tuple[int, ...], dim: Any, dtype: str) -> None:
    for keepdim in (False, True):
        pair.call("sum", draw(shape, dtype), dim, keepdim, tol=FINE[dtype] * 8)


def test_other_sums_take_the_general_way(pair: Pair) -> None:
    for shape, dim in (((40, 5), 1), ((40, 5), None), ((4, 5), 0), ((40, 0), 0)):
        pair.call("sum", draw(shape), dim, grad=False, launches=False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_cross_entropy_of_classes(pair: Pair, reduction: str, ignored: int, dtype: str) -> None:
    target = np.array([0, 2, 4, 1, 2, 3, 0])
    pair.call("cross_entropy", draw((7, 5), dtype), target, None, ignored, reduction, 0.0, tol=FINE[dtype] * 4)


def test_a_class_that_does_not_exist_gives_nan(pair: Pair) -> None:
    engine = pair.device
    x, target = engine.from_numpy(draw((2, 3))), engine.from_numpy(np.array([1, 3]))
    losses = engine.call("cross_entropy", x, target, reduction="none")
    assert np.isnan(engine.to_numpy(losses)).tolist() == [False, True]


@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("size", [1, 8, 9, 5000])
def test_dropout_draws_the_numbers_of_numpys_generator(pair: Pair, size: int, dtype: str) -> None:
    for engine in (pair.plain, pair.device):
        engine.generator.manual_seed(3)
        engine.generator.words(np, 4)
    pair.call("dropout", draw((size,), dtype), 0.3, True)
    assert pair.plain.generator.get_state() == pair.device.generator.get_state()


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_dropout_of_nothing_and_of_everything(pair: Pair, p: float) -> None:
    pair.call("dropout", draw((20,)), p, True, grad=False)


@pytest.mark.parametrize("count", [1, 4, 4097])
def test_random_words_are_numpys(pair: Pair, count: int) -> None:
    pair.plain.generator.set_state((11, (1 << 40) + 5))
    pair.device.generator.set_state((11, (1 << 40) + 5))
    expected = pair.plain.generator.words(np, count)
    found = pair.device.generator.words(pair.device.backends["cpu"].xp, count)
    assert pair.device.backends["cpu"].to_host(found).tolist() == expected.tolist()
