"""Random numbers: the same for a seed on every backend, repeatable from a state, and correctly distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime.random import Generator
from gradwire_protocol import dtypes
from tests.cuda_emulation import AVAILABLE, EmulatedBackend
from tests.strict_backend import StrictArray, StrictBackend

MANY = 200_000


def philox(seed: int, block: int) -> list[int]:
    """One block of Philox4x64-10, written from the paper, in plain integers."""
    mask = (1 << 64) - 1
    counter, key = [block, 0, 0, 0], [seed, 0]
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * counter[0], 0xCA5A826395121157 * counter[2]
        counter = [
            (second >> 64) ^ counter[1] ^ key[0], second & mask,
            (first >> 64) ^ counter[3] ^ key[1], first & mask,
        ]  # fmt: skip
        key = [(key[0] + 0x9E3779B97F4A7C15) & mask, (key[1] + 0xBB67AE8584CAA73B) & mask]
    return counter


# The generator


def test_the_published_answer_for_seed_zero() -> None:
    known = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert philox(0, 0) == known
    assert Generator(0).words(np, 4).tolist() == known


@pytest.mark.parametrize("seed", [0, 12345, (1 << 64) - 1])
def test_words_are_those_of_the_blocks_from_the_offset_on(seed: int) -> None:
    generator = Generator(seed)
    assert generator.words(np, 5).tolist() == (philox(seed, 0) + philox(seed, 1))[:5]
    assert generator.offset == 2
    assert generator.words(np, 1).tolist() == philox(seed, 2)[:1]
    assert generator.halves(np, 3).tolist() == [h for w in philox(seed, 3) for h in (w & 0xFFFFFFFF, w >> 32)][:3]


def test_uniform_numbers_are_the_upper_bits() -> None:
    fine = Generator(7).uniform(np, (3,), dtypes.float64)
    assert fine.tolist() == [(w >> 11) * 2.0**-53 for w in philox(7, 0)[:3]]
    coarse = Generator(7).uniform(np, (5,), dtypes.float32)
    halves = [h for w in philox(7, 0) for h in (w & 0xFFFFFFFF, w >> 32)]
    assert coarse.dtype == np.float32
    assert coarse.tolist() == [(h >> 8) * 2.0**-24 for h in halves[:5]]


def test_a_negative_seed_counts_modulo_two_to_the_64() -> None:
    assert Generator(-1).words(np, 4).tolist() == Generator((1 << 64) - 1).words(np, 4).tolist()


DRAWS: dict[str, Any] = {
    "words": lambda g, xp: g.words(xp, 7),
    "float64": lambda g, xp: g.uniform(xp, (3, 2), dtypes.float64),
    "float32": lambda g, xp: g.uniform(xp, (5,), dtypes.float32),
    "float16": lambda g, xp: g.uniform(xp, (5,), dtypes.float16),
    "complex64": lambda g, xp: g.uniform(xp, (5,), dtypes.complex64),
    "normal": lambda g, xp: g.normal(xp, (3, 3), dtypes.float32),
    "complex normal": lambda g, xp: g.normal(xp, (3,), dtypes.complex128),
    "coin": lambda g, xp: g.coin(xp, (9,), 0.3),
    "integers": lambda g, xp: g.integers(xp, (9,), -5, 20),
    "permutation": lambda g, xp: g.permutation(xp, 11),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_restored_state_draws_the_same_again(name: str) -> None:
    generator = Generator(3)
    generator.words(np, 5)
    state = generator.get_state()
    first = DRAWS[name](generator, np)
    generator.words(np, 3)
    generator.set_state(state)
    np.testing.assert_array_equal(DRAWS[name](generator, np), first)
    np.testing.assert_array_equal(DRAWS[name](_at(state), np), first)


def _at(state: tuple[int, int]) -> Generator:
    generator = Generator()
    generator.set_state(state)
    return generator


@pytest.mark.parametrize("name", DRAWS)
def test_another_array_library_gets_the_same_numbers(name: str) -> None:
    backend = StrictBackend()
    plain, strict = Generator(5), Generator(5)
    np.testing.assert_array_equal(DRAWS[name](plain, np), backend.to_host(DRAWS[name](strict, backend.xp)))
    assert plain.get_state() == strict.get_state()


@pytest.mark.skipif(not AVAILABLE, reason="needs a C++ compiler")
@pytest.mark.parametrize("base", [None, 3])
def test_the_cuda_kernel_computes_the_same_words(base: int | None) -> None:
    """Also where it counts from a number in memory, as in a graph."""
    xp = EmulatedBackend().xp
    generator = Generator(99)
    generator.set_state((99, 4))
    if base is not None:
        generator.base = (base, StrictArray(np.array([base], np.uint64)))
    words = generator.words(xp, 12)
    assert words.tolist() == philox(99, 4) + philox(99, 5) + philox(99, 6)


# Distributions


def test_uniform_numbers_fill_the_unit_interval_evenly() -> None:
    for dtype in (dtypes.float64, dtypes.float32):
        drawn = Generator(1).uniform(np, (MANY,), dtype)
        counts, _ = np.histogram(drawn, 50, (0, 1))
        assert counts.sum() == MANY
        chi_squared = ((counts - MANY / 50) ** 2 / (MANY / 50)).sum()
        assert chi_squared < 100  # 49 degrees of freedom: beyond 100 once in 30,000


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=lambda d: d.name)
def test_a_half_is_never_rounded_up_to_one(dtype: dtypes.DType) -> None:
    drawn = Engine(seed=2).call("rand", (MANY,), dtype=dtype)
    values = drawn.engine.to_numpy(drawn).astype(np.float64)
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01


def test_normal_numbers_have_the_moments_and_tails_of_the_normal_distribution() -> None:
    for dtype in (dtypes.float64, dtypes.float32):
        drawn = Generator(4).normal(np, (MANY,), dtype).astype(np.float64)
        assert abs(drawn.mean()) < 0.015
        assert abs(drawn.std() - 1) < 0.01
        assert abs((drawn**3).mean()) < 0.05
        assert abs((drawn**4).mean() - 3) < 0.12
        assert abs((np.abs(drawn) > 2).mean() - 0.0455) < 0.004
        pairs = drawn.reshape(2, -1)
        assert abs((pairs[0] * pairs[1]).mean()) < 0.02  # the two of a pair are independent


def test_a_complex_normal_number_has_variance_one() -> None:
    drawn = Generator(4).normal(np, (MANY,), dtypes.complex64)
    assert abs((np.abs(drawn) ** 2).mean() - 1) < 0.02
    assert abs(drawn.real.std() - 0.5**0.5) < 0.01


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.25, 1.0])
def test_a_coin_falls_with_its_probability(p: float) -> None:
    assert abs(Generator(6).coin(np, (MANY,), p).mean() - p) < 5 * (p * (1 - p) / MANY) ** 0.5 + 1e-12


def test_integers_are_equally_likely() -> None:
    drawn = Generator(8).integers(np, (MANY,), -3, 4)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert np.all(np.abs(counts - MANY / 7) < 5 * (MANY / 7) ** 0.5)


def test_integers_reach_both_ends_of_int64() -> None:
    drawn = Generator(8).integers(np, (1000,), -(1 << 63), 1 << 63)
    assert drawn.min() < -(1 << 62)
    assert drawn.max() > 1 << 62


def test_every_permutation_of_three_is_equally_likely() -> None:
    generator = Generator(9)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        order = tuple(generator.permutation(np, 3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1000) < 160 for count in counts.values())


# Through the engine


def values(tensor: Any) -> Any:
    return tensor.engine.to_numpy(tensor)


def test_sessions_of_one_seed_draw_the_same_and_do_not_disturb_each_other() -> None:
    a, b = Engine(seed=1), Engine(seed=1)
    first = values(a.call("randn", (5,)))
    a.call("rand", (5,))
    np.testing.assert_array_equal(values(b.call("randn", (5,))), first)


def test_manual_seed_restarts_and_the_state_can_be_kept(engine: Engine) -> None:
    engine.call("manual_seed", 42)
    first = values(engine.call("rand", (4,)))
    state = engine.call("get_rng_state")
    second = values(engine.call("rand", (4,)))
    engine.call("set_rng_state", state)
    np.testing.assert_array_equal(values(engine.call("rand", (4,))), second)
    engine.call("manual_seed", 42)
    np.testing.assert_array_equal(values(engine.call("rand", (4,))), first)


@pytest.mark.parametrize("op", ["dropout", "feature_dropout"])
def test_the_gradient_of_dropout_passes_where_the_input_did(engine: Engine, op: str) -> None:
    x = engine.from_numpy(np.ones((40, 30, 2)), requires_grad=True)
    out, kept = engine.call(op, x, 0.25)
    assert out.grad_fn is not None
    assert out.grad_fn.name == "MulBackward0"
    seed = engine.from_numpy(np.full((40, 30, 2), 2.0), requires_grad=True)
    (gradient,) = engine.call("grad", [out], [x], [seed], create_graph=True)
    mask = np.broadcast_to(values(kept), (40, 30, 2))
    np.testing.assert_allclose(values(out), mask / 0.75)
    np.testing.assert_allclose(values(gradient), 2 * mask / 0.75)
    (second,) = engine.call("grad", [gradient], [seed], [engine.from_numpy(np.ones((40, 30, 2)))])
    np.testing.assert_allclose(values(second), mask / 0.75)
    assert abs(mask.mean() - 0.75) < 0.06


def test_feature_dropout_drops_whole_channels(engine: Engine) -> None:
    x = engine.from_numpy(np.ones((20, 30, 4, 4), np.float32))
    out, _ = engine.call("feature_dropout", x, 0.5)
    channels = values(out).reshape(20, 30, 16)
    assert set(np.unique(channels.sum(-1))) == {0.0, 32.0}


def test_dropout_of_everything_gives_zeros_and_zero_gradients(engine: Engine) -> None:
    x = engine.from_numpy(np.ones(5, np.float32), requires_grad=True)
    out, _ = engine.call("dropout", x, 1.0)
    (gradient,) = engine.call("grad", [out], [x], [engine.from_numpy(np.ones(5, np.float32))])
    assert not values(out).any()
    assert not values(gradient).any()


@pytest.mark.parametrize(
    ("op", "arguments", "mean", "spread"),
    [
        ("uniform_", (2.0, 4.0), 3.0, 0.58), ("normal_", (1.0, 2.0), 1.0, 2.0), ("exponential_", (0.5,), 2.0, 2.0),
        ("bernoulli_", (0.25,), 0.25, 0.433), ("random_", (0, 10), 4.5, 2.87),
    ],
)  # fmt: skip
def test_samplers_in_place_write_their_distribution_and_stop_gradients(
    engine: Engine, op: str, arguments: tuple[Any, ...], mean: float, spread: float
) -> None:
    x = engine.from_numpy(np.ones((100, 100), np.float32), requires_grad=True)
    y = engine.call("mul", x, 2.0)
    version = y.storage.version
    engine.call(op, y, *arguments)
    drawn = values(y)
    assert y.storage.version == version + 1
    assert abs(drawn.mean() - mean) < 5 * spread / 100
    assert abs(drawn.std() - spread) < 0.1 * spread
    (gradient,) = engine.call("grad", [y], [x], [engine.from_numpy(np.ones((100, 100), np.float32))])
    assert not values(gradient).any()


def test_random_without_bounds_draws_all_that_the_dtype_holds_exactly(engine: Engine) -> None:
    for name, top in (("uint8", 255), ("int16", 32767), ("float16", 2048), ("bool", 1)):
        x = engine.call("zeros", (20_000,), dtype=dtypes.BY_NAME[name])
        engine.call("random_", x)
        drawn = values(x).astype(np.float64)
        assert drawn.min() >= 0
        assert 0.95 * top <= drawn.max() <= top


def test_multinomial_draws_by_weight_and_never_what_has_none(engine: Engine) -> None:
    weights = engine.from_numpy(np.array([[0.0, 1.0, 3.0], [5.0, 0.0, 0.0]]))
    drawn = values(engine.call("multinomial", weights, 4000, True))
    assert abs((drawn[0] == 2).mean() - 0.75) < 0.05
    assert set(drawn[0]) == {1, 2}
    assert set(drawn[1]) == {0}
    first = [values(engine.call("multinomial", weights, 3))[0][0] for _ in range(400)]
    assert abs(np.mean(np.array(first) == 2) - 0.75) < 0.12
    assert 0 not in first
