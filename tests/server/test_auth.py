"""Requests without a key are refused, except on open routes."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from gradwire_server.app import create_app
from gradwire_server.auth import KeyStore, generate_key
from gradwire_server.observability.logging import is_relevant
from gradwire_server.settings.settings import Settings, hash_key
from tests.live_server import LiveServer

from .exchange import problem, stream


@pytest.fixture
def anybody(server: LiveServer):
    with httpx.Client(base_url=server.url) as client:
        yield client


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/docs", "/openapi.json", "/"])
def test_health_and_documentation_need_no_key(anybody: httpx.Client, path: str) -> None:
    assert anybody.get(path).status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/version", "/v1/devices", "/v1/sessions", "/v1/ops", "/metrics", "/v1/no-such-route", "/v1/activity"]
)
def test_everything_else_needs_one(anybody: httpx.Client, path: str) -> None:
    response = anybody.get(path)
    problem(response, 401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic Z3c6Z3c="},
        {"X-API-Key": "wrong"},
        {"X-API-Key": ""},
        {"X-API-Key": b"wr\xf6ng"},
    ],
)
def test_a_wrong_key_is_refused(anybody: httpx.Client, headers: dict[str, str | bytes]) -> None:
    problem(anybody.get("/v1/version", headers=headers), 401, "unauthorized")


@pytest.mark.parametrize("form", ["Authorization", "X-API-Key"])
def test_a_key_comes_in_either_header(anybody: httpx.Client, server: LiveServer, form: str) -> None:
    value = server.api_key if form == "X-API-Key" else f"bearer {server.api_key}"
    assert anybody.get("/v1/version", headers={form: value}).status_code == 200


def test_a_hash_is_not_a_key(anybody: httpx.Client, server: LiveServer) -> None:
    headers = {"X-API-Key": hash_key(server.api_key)}
    problem(anybody.get("/v1/version", headers=headers), 401, "unauthorized")


def test_the_key_is_checked_before_the_body_is_looked_at(anybody: httpx.Client) -> None:
    problem(anybody.post("/v1/sessions", content=b"{not json"), 401, "unauthorized")


def test_a_stream_with_a_wrong_key_is_not_accepted(server: LiveServer, session: str) -> None:
    with pytest.raises(InvalidStatus) as refused, stream(server, session, key="wrong"):
        pass
    assert refused.value.response.status_code == 401
    assert b'"unauthorized"' in refused.value.response.body


def test_a_refused_stream_is_no_error_of_the_servers(server: LiveServer, session: str, caplog: Any) -> None:
    """uvicorn says it is; if its words change, this finds out."""
    with pytest.raises(InvalidStatus), stream(server, session, key="wrong"):
        pass
    deadline = time.monotonic() + 120
    while not (told := [each for each in caplog.records if each.name == "uvicorn.error"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not any(is_relevant(each) for each in told)


def test_settings_keep_hashes_only() -> None:
    key = generate_key()
    settings = Settings(api_keys=(key,))
    assert key not in repr(settings)
    assert settings.api_keys == (hash_key(key),)
    assert KeyStore.configured(settings).find(key) is not None


@pytest.mark.parametrize("given", ["one,two", " one , two ,", '["one", "two"]'])
def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("GRADWIRE_API_KEYS", given)
    assert Settings().api_keys == (hash_key("one"), hash_key("two"))


def test_a_server_without_keys_does_not_start() -> None:
    with pytest.raises(ValueError, match="GRADWIRE_API_KEYS"):
        create_app(Settings())


def test_keys_are_different_tenants() -> None:
    keys = KeyStore.configured(Settings(api_keys=("one", "two")))
    one, two = keys.find("one"), keys.find("two")
    assert one is not None
    assert two is not None
    assert one.tenant != two.tenant
    assert keys.find("three") is None


@pytest.mark.parametrize("query", ["api_key", "key", "token", "access_token", "authorization"])
def test_a_key_in_a_url_is_none(anybody: httpx.Client, server: LiveServer, query: str) -> None:
    problem(anybody.get("/v1/version", params={query: server.api_key}), 401, "unauthorized")
