"""The fleet of each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .running_fleet import RunningFleet, running_fleet


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder run in one process: each module has a Ray cluster, which takes a machine's processors."""
    for item in items:
        if "tests/fleet/" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("fleet"))


@pytest.fixture(scope="module")
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """A fleet of two nodes with a gateway. A module's ``SETTINGS`` and ``STORED`` choose how it is set."""
    settings = dict(getattr(request.module, "SETTINGS", {}))
    if getattr(request.module, "STORED", False):
        settings["store"] = str(tmp_path_factory.mktemp("store"))
    with running_fleet(**settings) as found:
        yield found
