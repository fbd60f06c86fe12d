"""Models that people train, through a server: the client's program on the GPU, and the same with PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from benchmarks.models import MODELS
from benchmarks.servers import Server, session
from benchmarks.training import Training

NEEDED = ("httpx", "websockets", "fastapi", "uvicorn", "structlog", "pydantic_settings", "limits")
SAME_STEPS = 3
"""Steps whose losses are compared. Later ones drift apart, since sums round differently."""


def missing() -> str:
    """What is not there of what a server and its client need; empty where all is."""
    return ", ".join(name for name in NEEDED if find_spec(name) is None)


def server() -> Server:
    """A server as users start it, which waits for nothing: its kernels are the GPU's."""
    return Server(None, compiled_kernels="off")


@contextmanager
def defaults(device: str) -> Iterator[None]:
    """Both libraries make tensors on this device until the end of the ``with``."""
    import gradwire

    torch.set_default_device(device)
    gradwire.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)
        gradwire.set_default_device(None)


def both(name: str) -> tuple[Training, Training]:
    """A model with equal weights, ours and PyTorch's, on the default devices. Dropout is off."""
    import gradwire

    torch.manual_seed(0)
    theirs, ours = MODELS[name](torch), MODELS[name](gradwire)
    ours.model.load_state_dict({k: gradwire.tensor(v.cpu().numpy()) for k, v in theirs.model.state_dict().items()})
    for module in [*theirs.model.modules(), *ours.model.modules()]:
        if "ropout" in type(module).__name__:
            module.p = 0.0
    return ours, theirs


def checks(device: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(label, check) of every model: the first steps have PyTorch's losses, and all lies on the device."""
    with server() as running, session(running), defaults(device):
        for name in MODELS:
            yield f"served: {name}", lambda name=name: _same(device, name)


def _same(device: str, name: str) -> None:
    ours, theirs = both(name)
    for parameter in ours.model.parameters():
        assert parameter.device.type == device.partition(":")[0], f"a parameter is on {parameter.device}"
    for number in range(SAME_STEPS):
        mine, wanted = float(ours.step(number).item()), float(theirs.step(number).item())
        np.testing.assert_allclose(mine, wanted, rtol=2e-3, err_msg=f"the loss of step {number}")


def ten_steps(training: Training) -> Callable[[], Any]:
    """Ten steps, of which the last loss is read, as work."""
    for _ in range(4):  # from the third time on, plans run
        training.ten()
    return training.ten
