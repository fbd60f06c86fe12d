"""What a gateway does alone: its keys, its patience, and the Ray that it starts. Without a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray", reason="a fleet needs Ray: pip install 'gradwire[cluster]'")

from gradwire_protocol.errors import InvalidRequest
from gradwire_server.auth.keys import KeyStore
from gradwire_server.auth.scopes import GATEWAY_SCOPES
from gradwire_server.fleet import joining
from gradwire_server.fleet.gateway import answer_timeout_s
from gradwire_server.fleet.gateway_app import create_gateway
from gradwire_server.fleet.routes import check_keys_are_shared
from gradwire_server.settings.settings import Settings


def test_keys_that_other_gateways_would_not_know_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    with pytest.raises(InvalidRequest, match="GRADWIRE_SHARED_KEYS"):
        check_keys_are_shared(Settings(data_dir=tmp_path))
    with pytest.raises(InvalidRequest):
        check_keys_are_shared(Settings(shared_keys=True))  # in what folder?
    check_keys_are_shared(Settings(shared_keys=True, data_dir=tmp_path))
    monkeypatch.delenv("RAY_ADDRESS")
    check_keys_are_shared(Settings())  # a Ray of its own has no other gateways


def test_gateways_with_one_folder_know_each_others_keys(tmp_path: Path) -> None:
    common: dict[str, Any] = {"session_host": "ray", "shared_keys": True, "data_dir": tmp_path, "api_keys": ("unused",)}
    first, second = (create_gateway(Settings(**common)).state.server.access.keys for _ in range(2))
    key, text = first.make("n", ["session"])
    assert second.refresh()
    assert second.find(text) is not None
    first.revoke(key.id)
    assert second.refresh()
    assert second.current(key) is None


def test_a_key_that_another_gateway_revoked_is_refused(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.json")
    key, text = keys.make("n", ["session"])
    other, _ = keys.make("o", ["session"])
    assert keys.refuse([key.id, "k_unknown"])
    assert not keys.refuse([key.id])
    found = keys.find(text)
    assert found is not None and found.end() == "revoked"
    keys.make("p", ["session"])  # reads and writes the file
    assert keys.current(key) is None
    assert keys.current(other) is not None


def test_a_gateway_waits_for_a_worker_longer_than_a_frame_may_run() -> None:
    for seconds in (1, 600):
        found = answer_timeout_s(Settings(max_frame_seconds=seconds))
        assert found is not None and found > seconds
    assert answer_timeout_s(Settings(max_frame_seconds=0)) is None
    app = create_gateway(Settings(api_keys=("unused",), session_host="ray", max_frame_seconds=600))
    assert app.state.gateway.http.timeout.read == answer_timeout_s(Settings(max_frame_seconds=600))


@pytest.mark.parametrize(
    ("given", "mode", "warned"),
    [
        ({}, None, False),
        ({"RAY_AUTH_MODE": "disabled"}, "disabled", True),
        ({"RAY_ADDRESS": "10.0.0.1:6379"}, None, True),
        ({"RAY_ADDRESS": "10.0.0.1:6379", "RAY_AUTH_MODE": "token"}, "token", False),
    ],
)
def test_a_ray_without_a_token_is_not_started_and_warned_about(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], mode: str | None, warned: bool
) -> None:
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE"):
        monkeypatch.setenv(name, given.get(name, ""))  # to be as before after the test
        if name not in given:
            monkeypatch.delenv(name)
    logged: list[str] = []
    monkeypatch.setattr(joining, "log", SimpleNamespace(warning=lambda text, **facts: logged.append(text)))
    joining.protect_ray()
    assert os.environ.get("RAY_AUTH_MODE") == mode
    assert bool(logged) == warned


def test_a_gateway_describes_itself() -> None:
    paths = create_gateway(Settings(api_keys=("unused",), session_host="ray")).openapi()["paths"]
    assert {path for method, path in GATEWAY_SCOPES} <= paths.keys()


def test_a_gateway_reads_what_clients_may_have_in_the_same_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADWIRE_DIRECT", "plain")
    assert Settings().direct is True
    monkeypatch.setenv("GRADWIRE_DIRECT", "0")
    assert Settings().direct is False
