"""Workers, gateways and the directory die, and nodes are drained: programs go on with the same numbers."""

from __future__ import annotations

import time
from typing import Any

import pytest

import gradwire
from gradwire_protocol.errors import SessionGone

from ..live_server import ADMIN_KEY, API_KEY, live_server
from .forwarder import forwarder
from .running_fleet import RunningFleet, kill, wait_until_gone
from .training import train


@pytest.fixture(scope="module")
def expected() -> bytes:
    """The weights of an undisturbed run on one server."""
    before = gradwire._core.session.current_session._current
    with live_server() as server, gradwire.connect(server.url, server.api_key):
        weights = train()
    gradwire._core.session.current_session._current = before
    return weights


@pytest.mark.parametrize("direct", [True, False])
def test_a_killed_worker_is_no_event_for_a_durable_session(fleet: RunningFleet, expected: bytes, direct: bool) -> None:
    fleet.wait_warm()
    with gradwire.connect(fleet.url, API_KEY, durability="durable", direct=direct) as session:
        workers = []

        def step(number: int) -> None:
            if number in (7, 15):
                worker = fleet.worker_of(session.id)
                workers.append(worker["id"])
                kill(worker["pid"])

        assert train(step) == expected
        assert len({*workers, fleet.worker_of(session.id)["id"]}) == 3


def test_a_worker_that_ray_kills_is_no_event(fleet: RunningFleet, expected: bytes) -> None:
    import ray

    fleet.wait_warm()
    with gradwire.connect(fleet.url, API_KEY, durability="applied") as session:

        def step(number: int) -> None:
            if number == 9:
                name = f"gradwire-worker-{fleet.worker_of(session.id)['id']}"
                ray.kill(ray.get_actor(name, namespace="gradwire"))

        assert train(step) == expected


def test_requests_reach_a_session_after_its_worker_died(fleet: RunningFleet) -> None:
    fleet.wait_warm()
    with fleet.http() as http:
        session = http.post("/v1/sessions", json={"durability": "durable"}).json()["id"]
        headers = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "uint8", "Gradwire-Shape": "3"}
        assert http.put(f"/v1/sessions/{session}/names/v", content=b"abc", headers=headers).is_success
        kill(fleet.worker_of(session)["pid"])
        found = http.get(f"/v1/sessions/{session}/names/v")
        assert found.status_code == 200, found.text
        assert found.json()["values"] == list(b"abc")
        assert [each["id"] for each in http.get("/v1/sessions").json()["sessions"]].count(session) == 1
        assert http.delete(f"/v1/sessions/{session}").status_code == 204


def test_a_session_without_durability_ends_with_its_worker(fleet: RunningFleet) -> None:
    fleet.wait_warm()
    with gradwire.connect(fleet.url, API_KEY, durability="none") as session:
        x = gradwire.ones(3)
        assert x.sum().item() == 3
        kill(fleet.worker_of(session.id)["pid"])
        with pytest.raises(SessionGone, match="lost with its worker"):
            for k in range(1000):
                (x * k).exp().max().item()
                time.sleep(0.02)


def test_sessions_go_on_without_the_directory(fleet: RunningFleet, expected: bytes) -> None:
    import ray

    fleet.wait_warm()
    former = fleet.state()["incarnation"]
    with gradwire.connect(fleet.url, API_KEY, durability="none") as session:

        def step(number: int) -> None:
            if number == 8:
                ray.kill(ray.get_actor("gradwire-directory", namespace="gradwire"), no_restart=False)
            if number == 9:
                with gradwire.open_session(fleet.url, API_KEY) as other:
                    assert other.id != session.id

        assert train(step) == expected
        with fleet.http() as http:
            assert session.id in [each["id"] for each in http.get("/v1/sessions").json()["sessions"]]
        assert fleet.state()["incarnation"] != former


def test_a_dormant_session_is_found_by_a_new_directory(fleet: RunningFleet) -> None:
    import ray

    with fleet.http() as http:
        session = http.post("/v1/sessions", json={"durability": "durable"}).json()["id"]
        headers = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "uint8", "Gradwire-Shape": "3"}
        assert http.put(f"/v1/sessions/{session}/names/v", content=b"xyz", headers=headers).is_success
        kill(fleet.worker_of(session)["pid"])
        ray.kill(ray.get_actor("gradwire-directory", namespace="gradwire"), no_restart=False)
        found = http.get(f"/v1/sessions/{session}/names/v")
        assert found.status_code == 200, found.text
        assert found.json()["values"] == list(b"xyz")
        http.delete(f"/v1/sessions/{session}")


@pytest.mark.parametrize("direct", [True, False])
def test_a_killed_gateway_is_no_event(fleet: RunningFleet, expected: bytes, direct: bool) -> None:
    doomed, other = fleet.start_gateway(), fleet.gateway
    with (
        forwarder(lambda: [doomed.url, other.url]) as url,
        gradwire.connect(url, API_KEY, direct=direct) as session,
        gradwire.open_session(other.url, API_KEY) as untouched,
    ):

        def step(number: int) -> None:
            if number == 10:
                kill(doomed.pid)

        assert train(step) == expected
        assert not doomed.alive
        with fleet.http() as http:
            for each in (session, untouched):
                assert http.get(f"/v1/sessions/{each.id}").status_code == 200


def test_a_drained_node_loses_its_sessions_without_an_error(fleet: RunningFleet, expected: bytes) -> None:
    with gradwire.connect(fleet.url, API_KEY, durability="durable") as session:
        drained: dict[str, Any] = {}

        def step(number: int) -> None:
            if number == 8:
                node = fleet.worker_of(session.id)["node"]
                with fleet.http(ADMIN_KEY) as http:
                    answer = http.post(f"/v1/fleet/nodes/{node[:12]}/drain")
                    assert answer.status_code == 200, answer.text
                    drained.update(answer.json())

        try:
            assert train(step) == expected
            assert session.id in drained["moved"]
            assert fleet.worker_of(session.id)["node"] != drained["node"]
            state = fleet.wait(
                lambda state: all(each["node"] != drained["node"] for each in state["workers"]), "the node has workers"
            )
            assert next(n for n in state["nodes"] if n["id"] == drained["node"])["state"] == "draining"
        finally:
            with fleet.http(ADMIN_KEY) as http:
                assert http.delete(f"/v1/fleet/nodes/{drained['node']}/drain").status_code == 200


def test_a_dead_node_loses_no_durable_session(fleet: RunningFleet, expected: bytes) -> None:
    with gradwire.connect(fleet.url, API_KEY, durability="durable", gpus=0.5, cpus=0) as session:

        def step(number: int) -> None:
            if number == 6:
                worker = fleet.worker_of(session.id)
                fleet.replace_node()
                wait_until_gone(worker["pid"])

        assert train(step) == expected
        assert fleet.worker_of(session.id)["node"] == fleet.nodes[-1].node_id
