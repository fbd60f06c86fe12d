"""Several devices, on a server whose GPUs are memory of the host: where tensors are made, moved and differentiated."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
import torch

import gradwire as gw
import gradwire_torch
from gradwire._core.session import current_session
from gradwire_engine.runtime import backends
from gradwire_torch.memory import ours
from tests.live_server import live_server

gradwire_torch.register()
FIRST, SECOND = "gradwire:0", "gradwire:1"


class HostBackend(backends.NumpyBackend):
    """Memory of the host under the name of a GPU."""

    def __init__(self, device: str) -> None:
        self.device = device


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server with two GPUs."""
    with (
        patch.object(backends, "cuda_device_count", lambda: 2),
        patch.object(backends.Backends, "_start", lambda self, device: HostBackend(device)),
        live_server() as found,
    ):
        yield found


@pytest.fixture(autouse=True)
def session(server: Any) -> Iterator[Any]:
    """A session there, as the program's."""
    before = current_session._current
    with gw.connect(server.url, server.api_key) as made:
        yield made
    current_session._current = before
    torch.gradwire.set_device(0)


MADE = {
    "zeros": lambda d: torch.zeros(3, device=d),
    "ones": lambda d: torch.ones(3, device=d),
    "full": lambda d: torch.full((2,), 3.0, device=d),
    "empty": lambda d: torch.empty(3, device=d),
    "empty_strided": lambda d: torch.empty_strided((2, 2), (1, 2), device=d),
    "arange": lambda d: torch.arange(3, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 3, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "tril_indices": lambda d: torch.tril_indices(3, 3, device=d),
    "a window": lambda d: torch.hann_window(4, device=d),
    "tensor": lambda d: torch.tensor([1.0, 2], device=d),
    "to": lambda d: torch.ones(3).to(d),
    "to with strides": lambda d: torch.ones(3, 4).t().to(d),
    "like another": lambda d: torch.zeros_like(torch.ones(2, device=d)),
    "like one of the CPU": lambda d: torch.ones_like(torch.ones(3), device=d),
    "new_zeros": lambda d: torch.ones(2, device=d).new_zeros(3),
    "randn": lambda d: torch.randn(3, device=d),
    "rand": lambda d: torch.rand(3, device=d),
    "randint": lambda d: torch.randint(0, 9, (3,), device=d),
    "randperm": lambda d: torch.randperm(3, device=d),
    "randn of a generator": lambda d: torch.randn(3, device=d, generator=torch.Generator(device=d)),
    "bernoulli": lambda d: torch.bernoulli(torch.ones(3, device=d)),
    "one_hot": lambda d: torch.nn.functional.one_hot(torch.tensor([1], device=d)),
    "a storage": lambda d: torch.tensor([], device=d).set_(torch.UntypedStorage(8, device=d)),
    "nonzero": lambda d: torch.ones(3, device=d).nonzero(),
    "counts": lambda d: torch.ones(3, device=d).unique(return_counts=True)[1],
    "with a number": lambda d: torch.where(torch.ones(3, device=d) > 0, torch.ones(3, device=d), 0.0),
    "with a tensor of one of the CPU": lambda d: torch.ones(3, device=d) + torch.tensor(3.0),
    "indices of the CPU": lambda d: torch.ones(3, device=d)[torch.tensor([1])],
    "a layer": lambda d: torch.nn.Linear(2, 2, device=d).weight,
    "resized": lambda d: torch.ones(2, device=d).resize_(5),
    "an operation computed here": lambda d: torch.ones(2, device=d).to(torch.float64).to(torch.float32),
}


@pytest.mark.parametrize("device", [FIRST, SECOND])
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_is_on_its_device(name: str, device: str) -> None:
    made = MADE[name](device)
    made.tolist()
    assert str(made.device) == device
    assert str(ours(made).device) == device.replace("gradwire", "cuda")


def test_an_error_about_two_devices_names_them() -> None:
    first, second = torch.ones(2, device=FIRST), torch.ones(2, device=SECOND)
    for refused in (lambda: first + second, lambda: first.mul_(second), lambda: torch.cat([first, second])):
        with pytest.raises(RuntimeError, match=f"{FIRST} and {SECOND}"):
            refused()
    query, key = (torch.ones(1, 2, 4, device=device) for device in (FIRST, SECOND))
    with pytest.raises(RuntimeError, match=f"{FIRST} and {SECOND}"):
        torch.nn.functional.scaled_dot_product_attention(query, key, key)
    assert (first + 1).tolist() == [2.0, 2.0]


def test_the_current_device_is_what_no_number_means() -> None:
    assert torch.gradwire.device_count() == torch.accelerator.device_count() == 2
    with torch.gradwire.device(1):
        assert torch.gradwire.current_device() == torch.accelerator.current_device_index() == 1
        assert str(torch.ones(2, device="gradwire").device) == SECOND
        assert str(torch.ones(2).to("gradwire").device) == FIRST  # PyTorch numbers that itself
    assert str(torch.ones(2, device="gradwire").device) == FIRST
    torch.accelerator.set_device_index(1)
    assert str(torch.ones(2, device="gradwire").device) == SECOND
    with torch.device(SECOND):
        assert str(torch.ones(2).device) == SECOND
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.gradwire.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]
    with pytest.raises(RuntimeError, match="the server has 2"):
        torch.ones(2, device="gradwire:2")


def test_a_copy_to_another_device_is_one() -> None:
    x = torch.arange(3.0, device=FIRST)
    y = x.to(SECOND)
    x.zero_()
    assert y.tolist() == [0, 1, 2] and str(y.device) == SECOND
    assert x.to(FIRST) is x and y.to(SECOND, torch.float64).dtype is torch.float64
    x.copy_(y)
    assert x.tolist() == [0, 1, 2] and str(x.device) == FIRST


@pytest.mark.parametrize(
    "attempt", [lambda x, y: x + y, lambda x, y: torch.cat([x, y]), lambda x, y: x @ y, lambda x, y: x.add_(y)]
)
def test_devices_do_not_mix(attempt: Any) -> None:
    with pytest.raises(RuntimeError, match="devices"):
        attempt(torch.ones(3, device=FIRST), torch.ones(3, device=SECOND))


def test_a_model_on_two_devices_is_trained_as_on_the_cpu() -> None:
    def weights(one: str, two: str) -> list[Any]:
        torch.manual_seed(0)
        first, second = torch.nn.Linear(3, 4).to(one), torch.nn.Linear(4, 1).to(two)
        parameters = [*first.parameters(), *second.parameters()]
        optimizer = torch.optim.Adam(parameters, 0.1)
        x = torch.arange(6.0).reshape(2, 3).to(one)
        for _ in range(3):
            optimizer.zero_grad()
            second(torch.tanh(first(x)).to(two)).square().mean().backward()
            assert all(p.grad is not None and p.grad.device == p.device for p in parameters)
            optimizer.step()
        return [p.detach().cpu() for p in parameters]

    for wanted, found in zip(weights("cpu", "cpu"), weights(FIRST, SECOND), strict=True):
        torch.testing.assert_close(found, wanted)


def test_backward_runs_in_the_thread_that_calls_it_and_with_its_grad_mode() -> None:
    seen = []

    class Seeing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append((threading.get_ident(), torch.is_grad_enabled(), torch.gradwire.current_device()))
            return grad * 2

    x = torch.ones(2, device=SECOND, requires_grad=True)
    with torch.gradwire.device(1):
        Seeing.apply(x).sum().backward()
        (again,) = torch.autograd.grad(Seeing.apply(x).sum(), x, create_graph=True)
    assert seen == [(threading.get_ident(), False, 1), (threading.get_ident(), True, 1)]
    assert x.grad is not None and x.grad.tolist() == again.tolist() == [2, 2]
    assert torch._C._is_multithreading_enabled()
