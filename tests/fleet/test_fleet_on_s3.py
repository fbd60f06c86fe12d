"""A fleet in an object store: a session survives its worker, and leaves nothing when it is deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradwire
from gradwire_server.durable.shared.object_storage import ObjectStorage

from ..live_server import API_KEY, live_server
from ..s3_server import BUCKET, CREDENTIALS, s3_server
from .running_fleet import RunningFleet, environment, kill, running_fleet
from .training import train

URL = f"s3://{BUCKET}/fleet"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as found:
        yield found


@pytest.fixture(scope="module")
def fleet(endpoint: str) -> Iterator[RunningFleet]:
    """A fleet of two nodes with a gateway; its processes learn of the store from their environment."""
    credentials = {f"AWS_{name.upper()}": value for name, value in CREDENTIALS.items()}
    with environment(AWS_ENDPOINT_URL=endpoint, **credentials), running_fleet(store=URL) as found:
        yield found


def test_a_session_in_an_object_store_outlives_its_worker_and_leaves_only_its_tombstone(
    fleet: RunningFleet, endpoint: str
) -> None:
    storage = ObjectStorage.open(URL, endpoint=endpoint, **CREDENTIALS)
    with live_server() as server, gradwire.open_session(server.url, server.api_key) as undisturbed, undisturbed:
        expected = train(steps=10)
    fleet.wait_warm()
    with gradwire.connect(fleet.url, API_KEY, durability="durable", cpus=0.5) as session:
        workers = []

        def step(number: int) -> None:
            if number == 5:
                worker = fleet.worker_of(session.id)
                workers.append(worker["id"])
                kill(worker["pid"])

        assert train(step, steps=10) == expected
        assert fleet.worker_of(session.id)["id"] not in workers
        kinds = {key.split("/")[2] for key in storage.keys(f"sessions/{session.id}/")}
        assert kinds >= {"claims", "published", "epochs", "placement"}
        with fleet.http() as http:
            assert http.delete(f"/v1/sessions/{session.id}").status_code == 204
    assert [key for key in storage.keys("sessions/") if session.id in key] == []
    assert storage.children("deleted/") == [session.id]
    bucket = ObjectStorage.open(f"s3://{BUCKET}", endpoint=endpoint, **CREDENTIALS)
    assert set(bucket.children("fleet/")) <= {"deleted", "owners", "sweeps", "usage"}
