"""Generators of the device, seeds and states of its random numbers, and parts that are computed again."""

from __future__ import annotations

import copy
import pickle
from itertools import chain
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import gradwire_torch

gradwire_torch.register()
D = "gradwire"

DRAWS = {
    "randn": lambda g: torch.randn(3, device=D, generator=g),
    "rand": lambda g: torch.rand(3, device=D, generator=g),
    "randint": lambda g: torch.randint(0, 10**6, (3,), device=D, generator=g),
    "randperm": lambda g: torch.randperm(99, device=D, generator=g),
    "normal_": lambda g: torch.empty(3, device=D).normal_(generator=g),
    "uniform_": lambda g: torch.empty(3, device=D).uniform_(generator=g),
    "exponential_": lambda g: torch.empty(3, device=D).exponential_(generator=g),
    "random_": lambda g: torch.empty(3, device=D).random_(generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(99, device=D), 5, generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((99,), 0.5, device=D), generator=g),
    "bernoulli_": lambda g: torch.full((99,), 0.5, device=D).bernoulli_(generator=g),
    "normal": lambda g: torch.normal(torch.zeros(3, device=D), 1.0, generator=g),
    "normal of a size": lambda g: torch.normal(0.0, 1.0, (3,), device=D, generator=g),
    "poisson": lambda g: torch.poisson(torch.full((9,), 50.0, device=D), generator=g),
    "gamma": lambda g: torch._standard_gamma(torch.full((9,), 5.0, device=D), generator=g),
    "an initializer": lambda g: torch.nn.init.xavier_uniform_(torch.empty(3, 3, device=D), generator=g),
}


def generator(seed: int = 5) -> torch.Generator:
    return torch.Generator(device=D).manual_seed(seed)


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_draws_the_same_numbers_again_and_leaves_the_devices_alone(name: str) -> None:
    draw = DRAWS[name]
    torch.manual_seed(1)
    untouched = torch.rand(2, device=D).tolist()
    torch.manual_seed(1)
    g = generator()
    first, second = draw(g).tolist(), draw(g).tolist()
    assert torch.rand(2, device=D).tolist() == untouched
    again = generator()
    assert [draw(again).tolist(), draw(again).tolist()] == [first, second]
    assert first != second
    assert draw(generator(6)).tolist() != first


def test_a_generators_state_is_kept_copied_and_pickled() -> None:
    g = generator()
    torch.rand(2, device=D, generator=g)
    state, other, pickled = g.get_state(), g.clone_state(), pickle.loads(pickle.dumps(g))  # noqa: S301
    assert state.device.type == "cpu" and state.dtype is torch.uint8
    numbers = torch.rand(2, device=D, generator=g).tolist()
    for one in (g.set_state(state), other, pickled):
        assert torch.rand(2, device=D, generator=one).tolist() == numbers
    assert g.device == torch.device(D, 0) and g.initial_seed() == 5
    assert torch.Generator(device=D).initial_seed() == torch.Generator().initial_seed()


def test_generators_of_every_device_are_generators() -> None:
    assert isinstance(generator(), torch.Generator) and isinstance(torch.Generator(), torch.Generator)
    assert not isinstance(3, torch.Generator) and torch.Generator("cpu").device.type == "cpu"
    torch.manual_seed(4)
    assert isinstance(torch.default_generator, torch.Generator)
    assert torch.equal(torch.rand(2, generator=torch.Generator().manual_seed(4)), torch.rand(2))


def test_a_generator_of_the_cpu_draws_none_on_the_device() -> None:
    with pytest.raises(RuntimeError, match="cannot draw numbers on gradwire"):
        torch.randn(3, device=D, generator=torch.Generator())


def test_a_loader_shuffles_by_a_generator_of_the_device() -> None:
    data = TensorDataset(torch.arange(32))
    orders = [
        [batch.tolist() for (batch,) in DataLoader(data, 4, shuffle=True, generator=generator())] for _ in range(2)
    ]
    order = list(chain(*orders[0]))
    assert orders[0] == orders[1] and sorted(order) == list(range(32)) != order


def test_the_state_is_restored_after_a_fork_of_it() -> None:
    torch.manual_seed(4)
    numbers = torch.rand(2, device=D).tolist()
    torch.manual_seed(4)
    with torch.random.fork_rng(device_type=D):
        torch.rand(5, device=D)
    states = torch.gradwire.get_rng_state_all()
    assert torch.rand(2, device=D).tolist() == numbers
    torch.gradwire.set_rng_state_all(states)
    assert torch.rand(2, device=D).tolist() == numbers


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_a_checkpoint_computes_again_draws_the_same_numbers(reentrant: bool) -> None:
    layer = torch.nn.Linear(64, 64).to(D)

    def part(x: Any) -> Any:
        return torch.dropout(layer(x), 0.5, True)

    def run(checkpointed: bool) -> Any:
        torch.manual_seed(3)
        layer.zero_grad()
        x = torch.ones(2, 64, device=D, requires_grad=True)
        y = checkpoint(part, x, use_reentrant=reentrant) if checkpointed else part(x)
        y.square().sum().backward()
        assert layer.weight.grad is not None
        return copy.copy(layer.weight.grad.tolist()), torch.rand(2, device=D).tolist()

    assert run(True) == run(False)
