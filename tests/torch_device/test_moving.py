"""State dicts, checkpoints and modules on their way to the device and back."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gradwire_torch

gradwire_torch.register()
D = "gradwire"


def model(device: str = D) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).to(device)


def saved(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def equal(one: Any, other: Any) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k].cpu(), other[k].cpu()) for k in one)


PLACES = {
    "a name": (D, D),
    "a device": (torch.device(D), D),
    "a number": (torch.device(D, 0), D),
    "a function": (lambda storage, where: storage.gradwire(), D),
    "the CPU": ("cpu", "cpu"),
    "a table": ({"gradwire:0": "cpu"}, "cpu"),
    "nothing": (None, D),
}


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", PLACES)
def test_a_state_dict_is_loaded_where_it_is_asked_for(name: str, weights_only: bool) -> None:
    where, wanted = PLACES[name]
    state = model().state_dict()
    found = torch.load(saved(state), map_location=where, weights_only=weights_only)
    assert {one.device.type for one in found.values()} == {wanted}
    assert equal(found, state)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_checkpoint_of_the_cpu_is_loaded_on_the_device(mapped: bool, tmp_path: Path) -> None:
    state = model("cpu").state_dict()
    torch.save(state, tmp_path / "checkpoint.pt")
    found = torch.load(tmp_path / "checkpoint.pt", map_location=D, mmap=mapped)
    assert {one.device.type for one in found.values()} == {D} and equal(found, state)


def test_a_model_without_memory_takes_the_tensors_of_a_checkpoint() -> None:
    state = model().state_dict()
    with torch.device("meta"):
        empty = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    empty.load_state_dict(state, assign=True)
    assert all(empty.state_dict()[k].data_ptr() == v.data_ptr() for k, v in state.items())
    x = torch.ones(4, 2, device=D)
    assert torch.equal(empty.eval()(x), model().eval()(x))
    assert nn.Linear(2, 2, device="meta").to_empty(device=D).weight.device.type == D


def test_a_training_goes_on_from_its_checkpoint() -> None:
    def step(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        net(torch.arange(8.0, device=D).reshape(4, 2)).square().mean().backward()
        optimizer.step()

    net = model()
    optimizer = torch.optim.Adam(net.parameters(), 0.1)
    step(net, optimizer)
    file = saved({"net": net.state_dict(), "optimizer": optimizer.state_dict()})
    step(net, optimizer)
    for where in ("cpu", D):
        file.seek(0)
        checkpoint = torch.load(file, map_location=where)
        other = model()
        again = torch.optim.Adam(other.parameters(), 0.3)
        other.load_state_dict(checkpoint["net"])
        again.load_state_dict(checkpoint["optimizer"])
        step(other, again)
        assert equal(other.state_dict(), net.state_dict())


def test_copies_and_pickles_of_modules_and_optimizers_are_apart() -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    net(torch.ones(4, 2, device=D)).sum().backward()
    optimizer.step()
    kept = {k: v.clone() for k, v in net.state_dict().items()}
    both = [copy.deepcopy((net, optimizer)), torch.load(saved((net, optimizer)), weights_only=False)]
    optimizer.step()
    grads = [p.grad for p in net.parameters()]
    for other, its in both:
        assert equal(other.state_dict(), kept) and not equal(other.state_dict(), net.state_dict())
        assert its.param_groups[0]["params"][0] is next(other.parameters())
        for parameter, grad in zip(other.parameters(), grads, strict=True):
            parameter.grad = grad
        its.step()
        assert equal(other.state_dict(), net.state_dict())


def test_a_checkpoint_goes_up_once_and_in_many_frames(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {f"{i}": torch.randn(256, 256) for i in range(24)}
    nbytes = sum(one.nbytes for one in state.values())
    file = saved(state)
    monkeypatch.setattr("gradwire._core.session.session.PAYLOAD_BYTES_PER_FRAME", 1 << 20)
    monkeypatch.setattr("gradwire._core.wire.frame_encoder.CHUNK_BYTES", 1 << 16)
    torch.ones(1, device=D).item()
    for how in ("load", "to"):
        before, frames, trips = alone.stats()["bytes_sent"], alone.frames, alone.link.round_trips
        found = torch.load(file, map_location=D) if how == "load" else {k: v.to(D) for k, v in state.items()}
        recorded = alone.link.round_trips - trips
        torch.gradwire.synchronize()
        assert recorded == 0
        assert alone.stats()["bytes_sent"] - before < 1.02 * nbytes
        assert alone.frames - frames >= nbytes >> 20
        assert equal(found, state)
        state = {k: v + 1 for k, v in state.items()}
