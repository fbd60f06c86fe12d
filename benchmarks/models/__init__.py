"""Models that people train, beside torch: with one thread each, and out of the box on all cores.

A step is a training step of real size; the loss is read after every tenth. *1 thread*: both sides have one. *All
cores*: neither side is told anything about threads, and the server has the settings of an embedded one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from ..report import Plan, Row, Target
from ..servers import Server, session
from ..timing import Figures, interleave, paired_ratios
from ..training import Build, Training, timed
from . import language, plain, vision

MODELS: Final[dict[str, Build]] = plain.MODELS | language.MODELS | vision.MODELS

CASES: Final = {"1 thread": 1, "all cores": None}
EACH: Final = Target(1.0, of="ratio")
MEANS: Final = {"1 thread": Target(0.85), "all cores": Target(0.9)}
SCALING: Final = Target(0.9, of="ratio", at_least=True)


def run(plan: Plan) -> Iterator[Row]:
    """For each model a row per number of threads and one for its scaling; then the geometric means."""
    import torch

    cores = torch.get_num_threads()
    ratios: dict[str, list[float]] = {case: [] for case in CASES}
    for name, build in list(MODELS.items())[: plan.of(len(MODELS), 1)]:
        found = {}
        for case, threads in CASES.items():
            with Server(threads) as server:
                found[case] = ours, theirs = _against_torch(name, build, plan, server, threads or cores)
            ratios[case].append(paired_ratios(ours, theirs).median)
            yield Row("models", f"{name}, {case}", "ms", ours, theirs, EACH)
        ours, theirs = (paired_ratios(*[found[case][side] for case in CASES]) for side in (0, 1))
        yield Row("models", f"{name}: speedup on all cores", "x", ours, theirs, SCALING)
    for case, each in ratios.items():
        mean = math.exp(sum(map(math.log, each)) / len(each))
        yield Row("models", f"geometric mean of the ratios, {case}", "x", Figures((mean,)), None, MEANS[case])
    torch.set_num_threads(1)


def _against_torch(name: str, build: Build, plan: Plan, server: Server, threads: int) -> tuple[Figures, Figures]:
    """Milliseconds per step, ours and torch's."""
    import torch

    import gradwire

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    with session(server):
        local, remote = build(torch), build(gradwire)
        weights = {key: gradwire.tensor(value.numpy()) for key, value in local.model.state_dict().items()}
        remote.model.load_state_dict(weights)
        _agree(name, local, remote)
        found = interleave({"ours": timed(remote), "theirs": timed(local)}, plan.rounds)
    return found["ours"], found["theirs"]


def _agree(name: str, local: Training, remote: Training) -> None:
    """Check that the first step has the same loss on both sides. Dropout is off, since its random numbers differ.

    Raises:
        AssertionError: with the losses.
    """
    losses = []
    for training in (local, remote):
        training.model.eval()
        losses.append(float(training.step(0).item()))
        training.model.train()
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3, err_msg=f"{name}: the first loss differs")
