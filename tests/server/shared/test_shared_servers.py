"""Servers on one shared storage: sessions are found, handed over, taken over and deleted through any of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradwire as torch
from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from gradwire_server.durable.shared.shared_store import SharedStore
from gradwire_server.sessions.sessions import SessionRegistry
from gradwire_server.settings.settings import Settings
from tests.cutting_relay import CuttingRelay
from tests.live_server import LiveServer, live_server

Two = tuple[LiveServer, LiveServer]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def servers(root: Path) -> Iterator[Two]:
    with live_server(store=str(root), lease_s=60) as one, live_server(store=str(root), lease_s=60) as other:
        yield one, other


def registry(server: LiveServer) -> SessionRegistry:
    found: SessionRegistry = server.app.state.server.registry
    return found


def in_loop(server: LiveServer, work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(work, server.loop).result(60)


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def connect(server: LiveServer, **more: Any) -> Any:
    return torch.connect(server.url, api_key=server.api_key, **more)


def test_a_session_is_handed_over_under_a_program(servers: Two) -> None:
    """Behind a relay that leads to another server then: the program notices nothing."""
    one, other = servers
    relay = CuttingRelay(int(one.url.rpartition(":")[2]))
    with torch.connect(f"http://127.0.0.1:{relay.port}", api_key=one.api_key, keep=True) as session:
        assert session.durability == "durable"
        weights = torch.zeros(4, requires_grad=True)
        for step in range(30):
            if step in (10, 20):
                source, target = (one, other) if step == 10 else (other, one)
                relay.target = int(target.url.rpartition(":")[2])
                assert in_loop(source, registry(source).hand_over(session.id))
                assert not in_loop(source, registry(source).hand_over(session.id))
            loss = ((weights - 1) ** 2).sum()
            loss.backward()
            with torch.no_grad():
                weights -= 0.1 * weights.grad
                weights.grad = None
        expected = 1 - 0.8**30
        np.testing.assert_allclose(weights.tolist(), [expected] * 4, rtol=1e-5)
        assert session.id in registry(one)._sessions
        assert session.id not in registry(other)._sessions


def test_a_released_session_is_used_through_another_server(servers: Two) -> None:
    one, other = servers
    session = connect(one, keep=True)
    torch.ones(3).set_name("ones")
    identity = session.id
    assert torch.tensor([1.0]).item() == 1.0
    session.close()
    assert in_loop(one, registry(one).hand_over(identity))
    with other.http() as http:
        assert http.get(f"/v1/sessions/{identity}/tensors", params={"named": True}).status_code == 200
        ticket = http.post("/v1/tickets", json={"session": identity})
        assert ticket.status_code == 201, ticket.text
        assert http.delete(f"/v1/sessions/{identity}").status_code == 204
    with one.http() as http:
        gone = http.get(f"/v1/sessions/{identity}")
        assert gone.status_code == 404
        assert gone.json()["code"] == "session_gone"


def test_strangers_attach_nothing(servers: Two) -> None:
    one, other = servers
    session = connect(one, keep=True)
    identity = session.id
    session.close()
    in_loop(one, registry(one).hand_over(identity))
    with other.http(other.other_key) as http:
        assert http.get(f"/v1/sessions/{identity}").status_code == 404
        assert http.get("/v1/sessions/s_nobody0000000000").status_code == 404
        assert http.get("/v1/sessions/..%2F..%2Fowners").status_code == 404
    assert identity not in registry(other)._sessions


def test_a_start_loads_no_sessions_but_lists_them(servers: Two, root: Path) -> None:
    session = connect(servers[0], keep=True)
    identity = session.id
    session.close()
    with live_server(store=str(root), lease_s=60) as third:
        assert len(registry(third)) == 0
        store = registry(third).store
        assert store is not None
        assert identity in dict(store.specs())


def test_a_server_that_loses_its_lease_stops(tmp_path: Path) -> None:
    """Its streams end, its clients go on elsewhere, and it touches no files."""
    with live_server(store=str(tmp_path), lease_s=1) as one, live_server(store=str(tmp_path), lease_s=60) as other:
        relay = CuttingRelay(int(one.url.rpartition(":")[2]))
        with torch.connect(f"http://127.0.0.1:{relay.port}", api_key=one.api_key, keep=True) as session:
            count = torch.zeros(1)
            count += 1
            assert count.item() == 1
            store = registry(one).store
            relay.target = int(other.url.rpartition(":")[2])
            store.storage.put = _unreachable  # type: ignore[union-attr, method-assign]
            for number in range(2, 8):
                count += 1
                assert count.item() == number
                time.sleep(0.3)
            until(lambda: registry(one)._lost is not None)
            count += 1
            assert count.item() == 8
            until(lambda: session.id in registry(other)._sessions)
            until(lambda: registry(one).draining)  # the process ends


def _unreachable(key: str, data: Any) -> None:
    raise OSError(5, "the storage is unreachable")


def test_dormant_sessions_leave_the_registry(tmp_path: Path, monkeypatch: Any) -> None:
    with live_server(store=str(tmp_path), park_after_s=0.5) as server:
        session = connect(server, keep=True)
        identity = session.id
        torch.ones(3).set_name("ones")
        session.close()
        until(lambda: identity not in registry(server)._sessions)
        store = registry(server).store
        assert store.owner_of(identity) is None  # type: ignore[union-attr]
        again = connect(server, session=identity)
        assert again.tensor("ones").tolist() == [1.0, 1.0, 1.0]
        again.close()


def test_sessions_live_in_an_object_store(s3: str, tmp_path: Path, monkeypatch: Any) -> None:
    for name, value in {
        "ENDPOINT_URL": s3,
        "REGION": "us-east-1",
        "ACCESS_KEY_ID": "x",
        "SECRET_ACCESS_KEY": "y",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    store = "s3://bucket-a/servers"
    with live_server(store=store, lease_s=60, data_dir=tmp_path) as one, live_server(store=store, lease_s=60) as other:
        session = connect(one, keep=True)
        weights = torch.full((3,), 2.0, requires_grad=True)
        (weights**2).sum().backward()
        weights.set_name("weights")
        identity = session.id
        assert weights.grad.tolist() == [4.0, 4.0, 4.0]
        session.close()
        in_loop(one, registry(one).hand_over(identity))
        again = connect(other, session=identity)
        assert again.tensor("weights").grad.tolist() == [4.0, 4.0, 4.0]
        again.close()
    assert not any((tmp_path / "scratch").iterdir())


def test_an_ended_server_leaves_its_sessions_free(tmp_path: Path) -> None:
    with live_server(store=str(tmp_path), lease_s=60) as one:
        session = connect(one, keep=True)
        identity = session.id
        torch.ones(3).set_name("ones")
        session.close()
    assert [key for key in DirectoryStorage(tmp_path).keys("owners/") if not key.endswith(".ended")]
    with live_server(store=str(tmp_path), lease_s=60) as other:
        again = connect(other, session=identity)
        assert again.tensor("ones").tolist() == [1.0, 1.0, 1.0]
        again.close()


def test_settings_of_shared_storage(tmp_path: Path) -> None:
    assert Settings(store=str(tmp_path), api_keys="k").promised_durability() == "durable"
    with pytest.raises(ValueError, match="GRADWIRE_STORE requires GRADWIRE_SESSION_HOST=inline"):
        Settings(store=str(tmp_path), session_host="process", api_keys="k")
    with pytest.raises(ValueError, match="must be a directory or s3://"):
        Settings(store="gs://bucket/x", api_keys="k")


def test_a_lapse_before_the_start_is_told(tmp_path: Path) -> None:
    """Imports may take longer than a lease."""
    store = SharedStore.open(str(tmp_path), 1.0)
    store.lease._lapse("it took too long")
    told: list[str] = []
    store.on_lapse(told.append)
    assert told == ["it took too long"]
    store.close()
