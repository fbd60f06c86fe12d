"""One server for most tests of this folder, and helpers to talk to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.live_server import LiveServer, live_server

BOTH_HOSTS = ("test_frames", "test_stream", "test_tensors")
"""Modules whose tests of ``server`` run twice: sessions in the server's own process, and in worker processes."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in BOTH_HOSTS and "server" in metafunc.fixturenames:
        metafunc.parametrize("server", ["inline", "process"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """A server with the host that the test asks for, or else with the one that the environment names."""
    host = getattr(request, "param", None)
    with live_server(max_sessions=1000, **({"session_host": host} if host else {})) as found:
        yield found


@pytest.fixture(scope="session")
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


@pytest.fixture(scope="session")
def stranger(server: LiveServer) -> Iterator[httpx.Client]:
    """A client with another tenant's key."""
    with server.http(server.other_key) as client:
        yield client


@pytest.fixture
def new_session(http: httpx.Client) -> Iterator[Callable[..., str]]:
    """Make a session and return its path; it is deleted after the test."""
    paths: list[str] = []

    def make(**wanted: Any) -> str:
        response = http.post("/v1/sessions", json=wanted)
        assert response.status_code == 201, response.text
        paths.append(response.headers["location"])
        return paths[-1]

    yield make
    for path in paths:
        http.delete(path)


@pytest.fixture
def session(new_session: Callable[..., str]) -> str:
    """The path of a fresh session."""
    return new_session()
