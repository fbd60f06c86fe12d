"""``torch.gradwire``, ``torch.accelerator``, seeds, autocast and the compiler."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys

import pytest
import torch

import gradwire_torch
from gradwire_torch.compiling import gradwire as backend
from tests.live_server import SOURCES

gradwire_torch.register()


def test_the_device_is_told_of() -> None:
    assert torch.gradwire.is_available() and torch.gradwire.device_count() == 1
    assert torch.accelerator.current_accelerator() == torch.device("gradwire")
    assert torch.accelerator.device_count() == 1 and torch.accelerator.current_device_index() == 0
    torch.accelerator.synchronize()
    assert torch.get_device_module("gradwire").get_device_name() == "cpu"
    with torch.device("gradwire"):
        assert torch.ones(1).device == torch.device("gradwire", 0)
    with torch.gradwire.device(0):
        assert torch.gradwire.current_device() == 0


@pytest.mark.parametrize("wanted", ["gradwire:7", 7])
def test_a_device_that_is_not_there_is_refused(wanted: object) -> None:
    with pytest.raises(RuntimeError, match="the server has 1"):
        torch.gradwire.set_device(wanted)


def test_memory_is_that_of_the_session() -> None:
    gc.collect()
    for _ in range(2):  # what was dropped is told with the next frame
        torch.ones(1, device="gradwire")
        torch.gradwire.synchronize()
    before = torch.gradwire.memory_allocated()
    x = torch.ones(1 << 18, device="gradwire")
    torch.gradwire.synchronize()
    assert torch.gradwire.memory_allocated() - before == 1 << 20 == x.untyped_storage().nbytes()


def test_a_seed_gives_the_same_numbers() -> None:
    torch.manual_seed(3)
    first = torch.randn(3, device="gradwire").tolist()
    state = torch.gradwire.get_rng_state()
    second = torch.randn(3, device="gradwire").tolist()
    torch.manual_seed(3)
    assert torch.randn(3, device="gradwire").tolist() == first
    torch.gradwire.set_rng_state(state)
    assert torch.randn(3, device="gradwire").tolist() == second


def test_a_program_that_does_not_use_it_connects_to_nothing() -> None:
    program = """
import torch, gradwire_torch, sys
gradwire_torch.register()
torch.manual_seed(3)
torch.ones(2).sum().item()
assert "gradwire" not in sys.modules and "numpy" in sys.modules
x = torch.randn(2, device="gradwire")
torch.manual_seed(3)
assert torch.equal(torch.randn(2, device="gradwire"), x)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": SOURCES, "GRADWIRE_COMPILED_KERNELS": "off", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_in_the_lower_precision(dtype: torch.dtype) -> None:
    layer, x = torch.nn.Linear(3, 4, device="gradwire"), torch.ones(2, 3, device="gradwire")
    with torch.autocast("gradwire", dtype=dtype):
        y = layer(x)
        assert y.dtype is dtype
    y.float().sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.tolist() == [[2, 2, 2]] * 4


def test_a_compiled_model_is_replayed_and_computes_the_same() -> None:
    made = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    plain = made.to("gradwire")
    other = copy.deepcopy(plain)
    compiled = torch.compile(other, backend=backend)
    x = torch.randn(5, 4, device="gradwire")
    for model, called in ((plain, plain), (other, compiled)):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            optimizer.zero_grad()
            called(x).square().mean().backward()
            optimizer.step()
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.cpu(), two.cpu())
