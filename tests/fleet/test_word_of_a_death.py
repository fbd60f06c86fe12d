"""Which of Ray's words on a worker certify the end of its process. With a fake handle, without a cluster."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray", reason="a fleet needs Ray: pip install 'gradwire[cluster]'")

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError

from gradwire_server.fleet import placement
from gradwire_server.fleet.placement import FleetWorkerState, Workers
from gradwire_server.fleet.resources import Resources
from gradwire_server.settings.settings import Settings

NODE = "node-1"
CRASHED = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker "
    "unexpectedly exits with a connection error code 2. End of file."
)


def died(text: str) -> ActorDiedError:
    error = ActorDiedError()
    error.error_msg = f"The actor died unexpectedly before finishing this task.\n\tactor_id: 1\n{text}"
    return error


class Handle:
    """Its ``run()`` ends as told, one outcome a call."""

    def __init__(self, *outcomes: Exception | str) -> None:
        self.outcomes = list(outcomes)
        self.run = SimpleNamespace(remote=self._run)

    async def _run(self) -> str:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def watched(monkeypatch: pytest.MonkeyPatch, handle: Handle, alive: bool = True) -> list[bool]:
    """What the Directory hears of the end of a worker with this handle."""
    heard: list[bool] = []
    nodes = [{"Alive": alive, "NodeID": NODE, "Resources": {}}]
    fakes: dict[str, Any] = {"nodes": lambda: nodes, "kill": lambda _: None, "exceptions": ray.exceptions}
    monkeypatch.setattr(placement, "ray", SimpleNamespace(**fakes))
    monkeypatch.setattr(placement, "UNAVAILABLE_S", 0.0)

    async def watch() -> None:
        workers = Workers(
            Settings(warm_workers=0), {}, b"", lambda _: 0, lambda _state, _reason, died: heard.append(died)
        )  # fmt: skip
        state = FleetWorkerState("w", handle, Resources(), node=NODE)
        workers.known["w"] = state
        await workers._watch(state)
        assert "w" not in workers.known

    asyncio.run(watch())
    return heard


def test_a_crash_is_the_end_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, Handle(died(CRASHED))) == [True]


def test_a_broken_connection_is_no_end_and_is_watched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    away = ActorUnavailableError("rpc error: connection reset", None)
    handle = Handle(away, away, died(CRASHED))
    assert watched(monkeypatch, handle) == [True]
    assert not handle.outcomes


@pytest.mark.parametrize(
    "error",
    [
        died("The actor is dead because it was killed by `ray.kill`."),
        died("The actor died because its node has died. Node Id: 1"),
        died("The actor is dead because its owner has died."),
        died(CRASHED.replace("SYSTEM_ERROR", "INTENDED_USER_EXIT")),
        died(CRASHED.replace("SYSTEM_ERROR", "NODE_OUT_OF_MEMORY")),
        died(""),
        RayActorError(None, CRASHED),
        ray.exceptions.GetTimeoutError(CRASHED),
    ],
)
def test_nothing_else_certifies_an_end(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert watched(monkeypatch, Handle(error)) == [False]


def test_a_crash_at_a_node_that_is_gone_waits_for_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, Handle(died(CRASHED)), alive=False) == [False]


def test_a_worker_that_returned_speaks_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, Handle("stopped")) == [False]
