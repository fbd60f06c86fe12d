"""A fleet beside one server: the perceptron's step on the direct path and relayed, and how long a new session takes.

Gateway, directory and workers are processes of this machine, in a Ray cluster of one node.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import httpx

import gradwire

from . import mlp
from .durability import train
from .report import Plan, Row, Target
from .servers import Server, session
from .timing import Figures, interleave, seconds
from .training import READ_EVERY

STEPS: Final = 30
NODE_CPUS: Final = 64
"""Logical: Ray places by this number, whatever the machine has."""

CREATED: Final = 30
COLD: Final = 5
QUIET: Final = {
    "RAY_AUTH_MODE": "disabled", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0",
    # Else Ray starts an idle process for each logical CPU.
    "RAY_enable_worker_prestart": "0", "RAY_prestart_worker_first_driver": "0",
}  # fmt: skip


def run(plan: Plan) -> Iterator[Row]:
    """Steps on three ways side by side, then new sessions."""
    with ExitStack() as stack:
        alone = stack.enter_context(Server(1))
        gateway = stack.enter_context(_gateway())
        with httpx.Client(headers={"Authorization": f"Bearer {gateway.key}"}, timeout=600) as http:
            _create(http, gateway, {})  # the first of a fleet takes longer than a client waits
        sides = {
            "one server": _side(stack, alone, plan),
            "direct": _side(stack, gateway, plan, direct=True),
            "relayed": _side(stack, gateway, plan, direct=False),
        }
        found = interleave(sides, plan.rounds)
        for side, figures in found.items():
            yield Row("fleet", f"MLP step, {side}", "ms", figures)
        for side, most in (("direct", 1.05), ("relayed", 1.5)):
            pairs = zip(found[side].values, found["one server"].values, strict=True)
            ratio = Figures(tuple(ours / one for ours, one in pairs))
            yield Row("fleet", f"MLP step, {side} over one server", "ratio", ratio, None, Target(most))
    with _gateway() as gateway, httpx.Client(headers={"Authorization": f"Bearer {gateway.key}"}, timeout=600) as http:
        yield Row("fleet", "new session, first of the fleet", "s", Figures((_create(http, gateway, {}),)))
        warm = [_create(http, gateway, {}) * 1e3 for _ in range(plan.of(CREATED, 2))]
        yield Row("fleet", "new session on a warm worker", "ms", Figures(tuple(warm)), None, Target(20))
        # Each amount is a class of its own, which no worker of the fleet has.
        amounts = itertools.count(2)
        cold = [_create(http, gateway, {"cpus": next(amounts)}) for _ in range(plan.of(COLD, 1))]
        note = "start of the process, imports, listening"
        yield Row("fleet", "new session on a cold worker", "s", Figures(tuple(cold)), None, Target(6), note)


def _side(stack: ExitStack, server: Server, plan: Plan, **how: Any) -> Callable[[], float]:
    if how:
        stack.enter_context(gradwire.connect(server.url, server.key, **how))
    else:
        stack.enter_context(session(server))
    training = mlp.build(gradwire)
    steps = plan.of(STEPS, READ_EVERY)
    train(training, 2 * READ_EVERY)

    def measure() -> float:
        training.step(0).item()
        return seconds(lambda: train(training, steps)) / steps * 1e3

    return measure


def _create(http: httpx.Client, gateway: Server, body: dict[str, Any]) -> float:
    began = time.perf_counter()
    answer = http.post(f"{gateway.url}/v1/sessions", json=body)
    taken = time.perf_counter() - began
    answer.raise_for_status()
    http.delete(f"{gateway.url}/v1/sessions/{answer.json()['id']}").raise_for_status()
    return taken


@contextmanager
def _gateway() -> Iterator[Server]:
    """A gateway of a new cluster."""
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ.update(QUIET)
    try:
        with ExitStack() as stack:
            node = {"num_cpus": NODE_CPUS, "num_gpus": 0, "include_dashboard": False}
            cluster = Cluster(initialize_head=True, head_node_args=node)
            stack.callback(cluster.shutdown)
            os.environ["RAY_ADDRESS"] = cluster.address
            yield stack.enter_context(Server(1, session_host="ray", placement_timeout_s=60))
    finally:
        os.environ.clear()
        os.environ.update(before)
