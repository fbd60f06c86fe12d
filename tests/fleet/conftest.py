"""One fleet for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradwire

from .running_fleet import RunningFleet, running_fleet


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder run in one process: their Ray cluster takes a machine's
    processors."""
    for item in items:
        if "tests/fleet/" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("fleet"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """A fleet of two nodes with a gateway, on shared storage in a directory."""
    with running_fleet(store=tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture(autouse=True)
def own_session() -> Iterator[None]:
    """What a test connects to does not become the session of later tests."""
    before = gradwire._core.session.current_session._current
    yield
    gradwire._core.session.current_session._current = before
