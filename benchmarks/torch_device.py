"""PyTorch itself, on its CPU and on gradwire's device: a training step of the GPT block and of ResNet-18.

A step is forward, loss, backward and the optimizer's step; each reads its loss unless a row says otherwise. *compiled*:
the model is compiled, by gradwire's back end on the device and not at all on the CPU. *time of an op*: the processor
time that the client's thread spends on a step that reads nothing, divided by the operations that the eager step
records; in it are PyTorch's dispatcher, tape, modules and optimizer. *overhead of an op*: that beyond what PyTorch
takes for the same step on its CPU where tensors have so few elements that computing them counts for little; compiled
there by the back end that runs a graph's operations one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import gpt
from .distances import ROUND_TRIPS, WARM
from .models import vision
from .report import Plan, Row, Target
from .servers import DelayedRoute, Server, session
from .timing import Figures, interleave, seconds
from .training import BATCHES, Build, Training

if TYPE_CHECKING:
    from gradwire._core.session.session import Session

NAME: Final = "torch_device"
PLACE: Final = "gradwire"
MODELS: Final[dict[str, Build]] = {"GPT block": gpt.build, "ResNet-18": vision.resnet}
SMALL: Final[dict[str, Build]] = {
    "GPT block": partial(gpt.build, size=gpt.Size(batch=1, context=4, width=8)),
    "ResNet-18": partial(vision.resnet, width=4, batch=2, side=8),
}
"""The same programs on a few numbers."""
WAYS: Final = ("eager", "compiled")
OF_AN_OP: Final = {"eager": Target(15.0), "compiled": Target(5.0)}
RTT_MS: Final = 20.0
STEPS: Final = {"GPT block": 10, "ResNet-18": 2}
"""Steps of a round: one of ResNet-18 takes most of a second."""
COUNTS: Final = ("ops", "frames", "round_trips")


def run(plan: Plan) -> Iterator[Row]:
    """For each model, eager and compiled: loopback beside PyTorch's CPU, and 20 ms away."""
    import torch

    import gradwire_torch

    gradwire_torch.register()
    torch.set_num_threads(1)
    with Server(1) as server:
        for name, build in list(MODELS.items())[: plan.of(len(MODELS), 1)]:
            ops, steps = 0.0, plan.of(STEPS[name], 2)
            for way in WAYS:
                with session(server) as opened:
                    here, there = _built(build, "cpu"), _built(build, PLACE, way)
                    _agree(f"{name}, {way}", here, there)
                    counted = _counts(opened, there, read=True)
                    ops = ops or counted["ops"]
                    yield from _near(f"{name}, {way}", plan, opened, here, there, counted, steps)
                    small = _built(SMALL[name], "cpu", way)
                    yield from _overhead(f"{name}, {way}", plan, opened, small, there, ops, OF_AN_OP[way], steps)
                with DelayedRoute(server, RTT_MS) as route, session(route) as opened:
                    yield from _far(f"{name}, {way}", plan, opened, _built(build, PLACE, way), steps)


def _built(build: Build, place: str, way: str = "eager") -> Training:
    """A training whose model and data are in that place."""
    import torch

    torch.manual_seed(0)
    with torch.device("cpu"):
        weights = build(torch).model.state_dict()
    with torch.device(place):
        training = build(torch)
    training.model.load_state_dict(weights)
    if way == "compiled":
        from gradwire_torch.compiling import gradwire

        backend = gradwire if place == PLACE else "aot_eager"
        forward = training.model.forward

        def whole(x: Any) -> Any:  # PyTorch's compiler does not begin in a module of PyTorch's own
            return forward(x)

        training.model.forward = torch.compile(whole, backend=backend)
    return training


def _agree(name: str, here: Training, there: Training) -> None:
    """Check that both sides compute the same.

    Raises:
        AssertionError: with the losses.
    """
    losses = [[float(training.step(i).item()) for i in range(3)] for training in (here, there)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=5e-3, err_msg=f"{name}: the first losses differ")


def _near(
    name: str, plan: Plan, opened: Session, here: Training, there: Training, counted: dict[str, float], steps: int
) -> Iterator[Row]:
    found = interleave(
        {"ours": partial(_milliseconds, there, steps), "theirs": partial(_milliseconds, here, steps)}, plan.rounds
    )
    yield Row(NAME, f"{name}: step on loopback", "ms", found["ours"], found["theirs"])
    for what in COUNTS[1:]:
        target = ROUND_TRIPS if what == "round_trips" else None
        yield Row(NAME, f"{name}: count", f"{what.replace('_', ' ')} a step", Figures((counted[what],)), None, target)
    unread = _counts(opened, there, read=False)["round_trips"]
    yield Row(
        NAME, f"{name}: count, loss not read", "round trips a step", Figures((unread,)), None, Target(0.0),
        difference=True,
    )  # fmt: skip


def _overhead(
    name: str, plan: Plan, opened: Session, small: Training, there: Training, ops: float, limit: Target, steps: int
) -> Iterator[Row]:
    for number in range(WARM + BATCHES):
        small.step(number % BATCHES)
    pairs = [(_thread_us(opened, there, steps), _thread_us(opened, small, steps)) for _ in range(plan.rounds)]
    note = f"{ops:.0f} operations a step"
    of_an_op = Figures(tuple(took / ops for took, _ in pairs))
    beyond = Figures(tuple((took - own) / ops for took, own in pairs))
    yield Row(NAME, f"{name}: time of an op", "us/op", of_an_op, None, None, note)
    yield Row(NAME, f"{name}: overhead of an op", "us/op", beyond, None, limit, note)


def _far(name: str, plan: Plan, opened: Session, there: Training, steps: int) -> Iterator[Row]:
    rounds = max(1, plan.rounds // 3)
    _settle(there)
    opened.synchronize()
    empty = median(seconds(opened.synchronize) * 1e3 for _ in range(plan.of(15, 2)))
    took = Figures(tuple(_milliseconds(there, steps) for _ in range(rounds)))
    trips = _counts(opened, there, read=True)["round_trips"]
    note = f"an empty round trip there takes {empty:.2f} ms"
    yield Row(NAME, f"{name}: step, {RTT_MS:g} ms away", "ms", took, None, None, note)
    yield Row(NAME, f"{name}: count, {RTT_MS:g} ms away", "round trips a step", Figures((trips,)), None, ROUND_TRIPS)


def _settle(training: Training) -> None:
    """Steps until frames are known to both sides."""
    for number in range(WARM + BATCHES):
        training.step(number % BATCHES).item()


def _counts(opened: Session, training: Training, read: bool) -> dict[str, float]:
    """What a settled step takes."""
    _settle(training)
    before = opened.stats()
    for number in range(BATCHES):
        loss = training.step(number)
        if read:
            loss.item()
    after = opened.stats()
    opened.synchronize()
    return {what: (after[what] - before[what]) / BATCHES for what in COUNTS}


def _milliseconds(training: Training, steps: int) -> float:
    """Of a step that reads its loss."""

    def several() -> None:
        for number in range(steps):
            training.step(number % BATCHES).item()

    return seconds(several) / steps * 1e3


def _thread_us(opened: Session, training: Training, steps: int) -> float:
    """Processor time of this thread in a step that reads nothing."""
    step: Callable[[int], Any] = training.step
    opened.synchronize()
    began = time.thread_time()
    for number in range(steps):
        step(number % BATCHES)
    took = time.thread_time() - began
    opened.synchronize()
    return took / steps * 1e6
