"""Random numbers: seeds, states, and generators other than the session's."""

from __future__ import annotations

import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")


def test_a_generator_draws_the_same_numbers_from_the_same_seed():
    generator = gradwire.Generator().manual_seed(3)
    together = gradwire.rand(4, generator=generator).tolist()
    generator.manual_seed(3)
    assert gradwire.rand(4, generator=generator).tolist() == together
    gradwire.manual_seed(3)
    assert gradwire.rand(4).tolist() == together
    assert generator.manual_seed(3) is generator and generator.initial_seed() == 3


def test_a_generator_leaves_the_sessions_own_numbers_alone():
    gradwire.manual_seed(1)
    expected = gradwire.rand(6).tolist()
    gradwire.manual_seed(1)
    first = gradwire.rand(3).tolist()
    gradwire.rand(100, generator=gradwire.Generator())
    assert first != expected[:3] or gradwire.rand(3).tolist()
    gradwire.manual_seed(1)
    gradwire.randn(100, generator=gradwire.Generator())
    assert gradwire.rand(6).tolist() == expected


DRAWS = [
    lambda g: gradwire.rand(5, generator=g), lambda g: gradwire.randn(5, generator=g),
    lambda g: gradwire.randint(0, 100, (5,), generator=g), lambda g: gradwire.randperm(9, generator=g),
    lambda g: gradwire.rand_like(gradwire.ones(5), generator=g), lambda g: gradwire.randn(2, 3, generator=g),
    lambda g: gradwire.bernoulli(gradwire.full((20,), 0.5), generator=g),
    lambda g: gradwire.multinomial(gradwire.ones(30), 8, generator=g),
    lambda g: gradwire.normal(0.0, 1.0, (5,), generator=g), lambda g: gradwire.empty(5).uniform_(generator=g),
    lambda g: gradwire.empty(5).normal_(generator=g), lambda g: gradwire.empty(5).exponential_(generator=g),
    lambda g: gradwire.nn.init.xavier_uniform_(gradwire.empty(3, 3), generator=g),
]  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS)
def test_every_sampler_takes_a_generator(draw, round_trips):
    round_trips()
    first, second = gradwire.Generator().manual_seed(5), gradwire.Generator().manual_seed(5)
    one, other, more = draw(first), draw(second), draw(first)
    assert round_trips() == 0
    assert one.tolist() == other.tolist() != more.tolist()
    assert draw(None) is not None


def test_states_are_saved_and_restored_without_waiting(round_trips):
    generator = gradwire.Generator()
    round_trips()
    state, own = generator.get_state(), gradwire.get_rng_state()
    one = gradwire.rand(3, generator=generator), gradwire.rand(3)
    generator.set_state(state)
    gradwire.set_rng_state(own)
    other = gradwire.rand(3, generator=generator), gradwire.rand(3)
    assert round_trips() == 0
    assert [x.tolist() for x in one] == [x.tolist() for x in other]
    copy = generator.clone_state()
    assert gradwire.rand(3, generator=copy).tolist() == gradwire.rand(3, generator=generator).tolist()


def test_a_fork_leaves_the_numbers_as_they_were():
    gradwire.manual_seed(0)
    expected = gradwire.rand(4).tolist()
    gradwire.manual_seed(0)
    first = gradwire.rand(1).item()
    with gradwire.random.fork_rng():
        gradwire.manual_seed(77)
        gradwire.rand(9)
    with pytest.raises(KeyError), gradwire.random.fork_rng(devices=[]):
        gradwire.rand(9)
        raise KeyError
    gradwire.manual_seed(0)
    assert gradwire.rand(4).tolist() == expected and first == expected[0]


def test_seeds_are_remembered():
    assert gradwire.manual_seed(12) is gradwire.default_generator
    assert gradwire.initial_seed() == gradwire.default_generator.initial_seed() == 12
    drawn = gradwire.seed()
    assert gradwire.initial_seed() == drawn
    gradwire.manual_seed(-1)
    assert gradwire.initial_seed() == 2**64 - 1
    assert gradwire.Generator().initial_seed() == torch.Generator().initial_seed()


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, "x", None])
def test_what_is_no_seed_is_refused(seed):
    for attempt in (gradwire.manual_seed, gradwire.Generator().manual_seed):
        with pytest.raises((ValueError, TypeError), match="seed"):
            attempt(seed)


def test_what_is_no_generator_or_state_is_refused():
    with pytest.raises(TypeError, match="Generator"):
        gradwire.rand(2, generator=3)
    for wrong in (gradwire.ones(16), gradwire.zeros(5056, dtype=gradwire.uint8), [1]):
        with pytest.raises(TypeError, match="16 elements"):
            gradwire.set_rng_state(wrong)
