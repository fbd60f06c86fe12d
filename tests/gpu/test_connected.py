"""The checks of NCCL run on emulated GPUs: as many as a machine may have."""

from __future__ import annotations

from typing import Any

import pytest

from gradwire_engine.runtime import backends, nccl
from tests.cuda_emulation.nccl import ConnectedBackend, Network

from . import connected


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_the_checks_pass_on_emulated_gpus(gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network()

    def start(self: Any, device: str) -> Any:
        return ConnectedBackend(network, int(device.partition(":")[2]))

    monkeypatch.setattr(backends.Backends, "_start", start)
    monkeypatch.setattr(connected, "available_devices", lambda: ["cpu", *(f"cuda:{i}" for i in range(gpus))])
    labels = []
    for label, check in connected.checks("cuda:0"):
        check()
        labels.append(label)
    assert len(labels) == {1: 2, 2: 3, 4: 4}[gpus]
    assert network.aborted == []


@pytest.mark.skipif(nccl.version() > 0, reason="there is NCCL")
def test_without_nccl_they_name_the_package() -> None:
    assert "nvidia-nccl" in connected.missing()
