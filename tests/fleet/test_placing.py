"""Sessions of a fleet: created on workers, used through a gateway, listed and deleted."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import gradwire
from gradwire.cli.main import app
from gradwire_protocol.errors import InvalidRequest, SessionGone

from ..live_server import ADMIN_KEY, API_KEY, OTHER_KEY, live_server
from .running_fleet import MAX_KEY_SESSIONS, MODEL, RunningFleet


@pytest.fixture(autouse=True)
def no_sessions_left(fleet: RunningFleet):
    yield
    for key in (API_KEY, OTHER_KEY):
        with fleet.http(key) as http:
            for each in http.get("/v1/sessions").json()["sessions"]:
                http.delete(f"/v1/sessions/{each['id']}")


def descend() -> list[float]:
    """A few steps of a small training run."""
    gradwire.manual_seed(3)
    w = gradwire.randn(8, 1).requires_grad_()
    x = gradwire.randn(32, 8)
    y = x @ gradwire.arange(8.0).reshape(8, 1)
    losses = []
    for _ in range(5):
        loss = ((x @ w - y) ** 2).mean()
        (grad,) = gradwire.autograd.grad(loss, [w])
        with gradwire.no_grad():
            w -= 0.1 * grad
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("direct", [True, False])
def test_a_fleet_computes_what_one_server_does(fleet: RunningFleet, direct: bool) -> None:
    with live_server() as server, gradwire.connect(server.url, server.api_key):
        expected = descend()
    with gradwire.connect(fleet.url, API_KEY, direct=direct):
        assert descend() == expected


def test_rest_reaches_the_session_through_the_gateway(fleet: RunningFleet) -> None:
    with fleet.http() as http:
        made = http.post("/v1/sessions", json={"seed": 1})
        assert made.status_code == 201
        session = made.json()["id"]
        assert made.headers["Location"] == f"/v1/sessions/{session}"
        path = f"/v1/sessions/{session}"
        tensor = 7
        values = np.arange(6, dtype=np.float32)
        stored = http.put(
            f"{path}/tensors/{tensor}", content=values.tobytes(),
            headers={"Content-Type": "application/octet-stream", "Gradwire-Dtype": "float32", "Gradwire-Shape": "2,3"},
        )  # fmt: skip
        assert stored.status_code in (200, 201), stored.text
        assert http.get(f"{path}/tensors/{tensor}").json()["values"] == values.reshape(2, 3).tolist()
        assert http.get(path).json()["contents"]["tensors"] is not None
        assert [each["id"] for each in http.get("/v1/sessions").json()["sessions"]] == [session]
        assert http.get(f"{path}/tensors/77").status_code == 404
        assert http.delete(path).status_code == 204
        gone = http.get(path)
        assert gone.status_code == 404
        assert gone.json()["code"] == "session_gone"


def test_a_large_body_is_streamed_to_the_worker(fleet: RunningFleet) -> None:
    values = np.random.default_rng(0).random((512, 1024)).astype(np.float32)  # 2 MB
    with fleet.http() as http:
        session = http.post("/v1/sessions").json()["id"]
        path = f"/v1/sessions/{session}/names/weights"
        headers = {
            "Content-Type": "application/octet-stream", "Gradwire-Dtype": "float32", "Gradwire-Shape": "512,1024"
        }  # fmt: skip
        assert http.put(path, content=values.tobytes(), headers=headers).status_code in (200, 201)
        raw = http.get(path, headers={"Accept": "application/octet-stream"})
        assert raw.content == values.tobytes()


def test_an_exported_session_is_imported_on_any_worker(fleet: RunningFleet) -> None:
    with fleet.http() as http:
        session = http.post("/v1/sessions").json()["id"]
        headers = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "float32", "Gradwire-Shape": "3"}
        values = np.array([1, 2, 3], np.float32)
        http.put(f"/v1/sessions/{session}/names/v", content=values.tobytes(), headers=headers)
        file = http.get(f"/v1/sessions/{session}/export").content
        again = http.post("/v1/sessions/import", content=file, headers={"Content-Type": "application/octet-stream"})
        assert again.status_code == 201, again.text
        found = http.get(f"/v1/sessions/{again.json()['id']}/names/v").json()
        assert found["values"] == values.tolist()


def test_tenants_see_only_their_sessions_and_share_no_worker(fleet: RunningFleet) -> None:
    with fleet.http() as mine, fleet.http(OTHER_KEY) as other:
        session = mine.post("/v1/sessions").json()["id"]
        theirs = other.post("/v1/sessions").json()["id"]
        assert other.get(f"/v1/sessions/{session}").json()["code"] == "not_found"
        assert other.delete(f"/v1/sessions/{session}").json()["code"] == "not_found"
        assert [each["id"] for each in other.get("/v1/sessions").json()["sessions"]] == [theirs]
        assert fleet.worker_of(session)["id"] != fleet.worker_of(theirs)["id"]


def test_a_repeated_request_creates_one_session(fleet: RunningFleet) -> None:
    second = fleet.start_gateway()
    with fleet.http() as http, second.http() as other:
        headers = {"Idempotency-Key": "once"}
        first = http.post("/v1/sessions", json={"seed": 5}, headers=headers).json()["id"]
        again = other.post("/v1/sessions", json={"seed": 5}, headers=headers)
        assert again.json()["id"] == first
        different = other.post("/v1/sessions", json={"seed": 6}, headers=headers)
        assert different.json()["code"] == "invalid_request"


def test_quotas_count_over_all_gateways(fleet: RunningFleet) -> None:
    second = fleet.start_gateway()
    with fleet.http() as http, second.http() as other:
        for client in (http, other) * (MAX_KEY_SESSIONS // 2):
            assert client.post("/v1/sessions").status_code == 201
        refused = other.post("/v1/sessions")
        assert refused.status_code == 429
        assert "GRADWIRE_MAX_KEY_SESSIONS" in refused.json()["detail"]


def test_a_gpu_session_runs_where_the_gpu_is(fleet: RunningFleet) -> None:
    # The GPUs are logical: the session computes on the processor of the node that has them.
    with gradwire.open_session(fleet.url, API_KEY, gpu=MODEL, gpus=0.5, labels={"zone": "east"}) as session:
        node = fleet.worker_of(session.id)["node"]
        here = next(each for each in fleet.state()["nodes"] if each["id"] == node)
        assert here["gpu"] == MODEL
        assert here["gpus_taken"] == 0.5


@pytest.mark.parametrize(
    "asked", [{"gpu": "B200"}, {"gpus": 64}, {"memory": "999TB"}, {"labels": {"zone": "mars"}}, {"cpus": 1000}]
)
def test_resources_that_no_node_has_are_refused_with_what_exists(fleet: RunningFleet, asked: dict) -> None:
    with pytest.raises(InvalidRequest, match=r"no node of the fleet has .*; its nodes have: .*CPU 4") as caught:
        gradwire.open_session(fleet.url, API_KEY, **asked)
    assert any(f"accelerator_type:{MODEL}" in each["resources"] for each in caught.value.details["nodes"])


def test_resources_in_use_are_refused_after_the_timeout(fleet: RunningFleet) -> None:
    with fleet.http() as http:
        assert http.post("/v1/sessions", json={"gpus": 2, "cpus": 0}).status_code == 201
        refused = http.post("/v1/sessions", json={"gpus": 1, "cpus": 0})
        assert refused.status_code == 503
        assert "GRADWIRE_PLACEMENT_TIMEOUT_S" in refused.json()["detail"]
        assert refused.json()["retryable"]


def test_one_server_refuses_to_choose_a_machine() -> None:
    with live_server() as server, pytest.raises(InvalidRequest, match="gpu='H100' chooses a machine of a fleet"):
        gradwire.open_session(server.url, server.api_key, gpu="H100")


def test_a_worker_takes_nobody_without_a_pass(fleet: RunningFleet) -> None:
    import httpx

    with fleet.http() as http:
        session = http.post("/v1/sessions").json()["id"]
    url = fleet.worker_of(session)["url"]
    answer = httpx.get(f"{url}/v1/sessions/{session}", headers={"Authorization": f"Bearer {API_KEY}"})
    assert answer.status_code == 401


def test_a_deleted_session_is_gone_for_its_program(fleet: RunningFleet) -> None:
    with gradwire.connect(fleet.url, API_KEY) as session:
        x = gradwire.ones(3)
        assert x.sum().item() == 3
        with fleet.http() as http:
            assert http.delete(f"/v1/sessions/{session.id}").status_code == 204
        with pytest.raises(SessionGone):
            (x * 3).exp().max().item()


def test_the_command_shows_the_fleet(fleet: RunningFleet) -> None:
    options = ["--url", fleet.url, "--api-key", ADMIN_KEY]
    shown = CliRunner().invoke(app, ["fleet", "status", *options])
    assert shown.exit_code == 0, shown.output
    assert MODEL in shown.output
    found = json.loads(CliRunner().invoke(app, ["fleet", "status", "--json", *options]).output)
    assert len(found["nodes"]) == 2
    refused = CliRunner().invoke(app, ["fleet", "status", "--url", fleet.url, "--api-key", API_KEY])
    assert refused.exit_code == 1
