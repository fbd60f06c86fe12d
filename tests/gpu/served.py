"""A server on a GPU: models that people train beside PyTorch, sessions beside each other, errors, and a restart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from benchmarks.models import MODELS
from benchmarks.servers import Server, inside, session
from benchmarks.training import BATCHES, Training

NEEDED = ("httpx", "websockets", "fastapi", "uvicorn", "structlog", "pydantic_settings", "limits")
SAME_STEPS = 3
"""Steps whose losses are compared. Later ones drift apart, since sums round differently."""


def missing() -> str:
    """What is not there of what a server and its client need; empty where all is."""
    return ", ".join(name for name in NEEDED if find_spec(name) is None)


def server(port: int = 0, **settings: Any) -> Server:
    """A server as users start it, which waits for nothing: its kernels are the GPU's."""
    return Server(None, port, compiled_kernels="off", **settings)


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
    yield "served: what is too large", lambda: _too_large(device)
    yield "served: sessions at once", lambda: _beside(device)
    yield "served: a restart", lambda: _restarted(device)


def _too_large(device: str) -> None:
    """What the server's limits forbid, and what the GPU has no memory for, are typed errors; the session goes on."""
    import gradwire

    most = 1 << 50
    for settings, error in (({}, gradwire.LimitExceeded), (
        {"max_tensor_bytes": most, "max_session_bytes": most}, gradwire.OutOfMemoryError
    )):  # fmt: skip
        with server(**settings) as running, session(running), defaults(device):
            kept = gradwire.arange(4.0)
            try:
                gradwire.empty(1 << 38, device=device)[0].item()
            except error:
                pass
            else:
                raise AssertionError("2^40 bytes were allocated")
            assert kept.sum().item() == 6.0


TOGETHER = ("MLP, 2048 wide", "GPT", "character LSTM", "ViT")


def _losses(trainings: list[tuple[Any, Training]], steps: int) -> list[list[float]]:
    """The losses of models in sessions that compute at the same time: each third one is read."""
    found: list[list[float]] = [[] for _ in trainings]
    for number in range(steps):
        for (opened, training), losses in zip(trainings, found, strict=True):
            with inside(opened):
                loss = training.step(number % BATCHES)
                if number % 3 == 2:
                    losses.append(float(loss.item()))
    return found


def _started(running: Server, name: str, stack: ExitStack) -> tuple[Any, Training]:
    import gradwire

    opened = stack.enter_context(gradwire.connect(running.url, running.key))
    with inside(opened):
        gradwire.manual_seed(1)
        return opened, MODELS[name](gradwire)


def _beside(device: str) -> None:
    """Sessions that share a GPU compute what each computes alone, to the last bit, graphs and captures included."""
    with server() as running, defaults(device):
        with ExitStack() as stack:
            together = _losses([_started(running, name, stack) for name in TOGETHER], 24)
        for name, losses in zip(TOGETHER, together, strict=True):
            with ExitStack() as stack:
                (alone,) = _losses([_started(running, name, stack)], 24)
            assert losses == alone, f"{name}: {losses} beside others, {alone} alone"


def _restarted(device: str) -> None:
    """A server that is killed and started again has the weights that were there, and trains on to the same bits."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as servers, defaults(device):
        first = servers.enter_context(server(data_dir=scratch, durability="applied"))
        opened, training = _started(first, "MLP, 2048 wide", servers)
        _losses([(opened, training)], 12)
        with inside(opened):
            weights = _weights(training)
        first.kill()
        port = int(first.url.rpartition(":")[2])
        servers.enter_context(server(port, data_dir=scratch, durability="applied", api_keys=first.key))
        with inside(opened):
            assert _weights(training) == weights, "the weights differ after a restart"
        _losses([(opened, training)], 6)
        with inside(opened):
            weights = _weights(training)
        again, whole = _started(first, "MLP, 2048 wide", servers)
        _losses([(again, whole)], 12)
        _losses([(again, whole)], 6)
        with inside(again):
            assert _weights(whole) == weights, "training on gave other bits than training through"


def _weights(training: Training) -> list[bytes]:
    return [parameter.detach().cpu().numpy().tobytes() for parameter in training.model.parameters()]


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
