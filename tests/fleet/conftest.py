"""A fleet for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradwire

from .running_fleet import RunningFleet, running_fleet

CLUSTERS = frozenset({"fleet", "wide"})
"""Fixtures that start a Ray cluster."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """The tests of a module that use a cluster run in one process, so that each module starts one."""
    for item in items:
        if "tests/fleet/" in item.nodeid and CLUSTERS & set(item.fixturenames):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


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
