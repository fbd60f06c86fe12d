"""Storages, owners and what they do to a session, and the files of owners that stopped."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradwire_server.durable.disk import Disk
from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from gradwire_server.durable.shared.object_storage import ObjectStorage
from gradwire_server.durable.shared.storage import Storage
from tests.server.shared.owners import Server
from tests.server.story import Story

from ...s3_server import BUCKET, CREDENTIALS, s3_server

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The endpoint of an S3-compatible server."""
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3: str) -> ObjectStorage:
    """An empty prefix of the bucket."""
    return ObjectStorage.open(f"s3://{BUCKET}/test-{next(_NUMBERS)}", endpoint=s3, **CREDENTIALS)


@pytest.fixture(scope="module")
def story() -> Story:
    return Story(steps=2)


@pytest.fixture(scope="module")
def states(story: Story) -> list[str]:
    return story.states()


@pytest.fixture
def storage(tmp_path: Path) -> DirectoryStorage:
    return DirectoryStorage(tmp_path / "shared")


@pytest.fixture
def server(storage: DirectoryStorage, tmp_path: Path) -> Callable[..., Server]:
    """Makes one more owner on the storage."""

    def make(on: Storage = storage, **more: Any) -> Server:
        return Server(on, tmp_path / "scratch", **more)

    return make


@pytest.fixture(autouse=True)
def _files_of_stopped_owners(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what an owner left open that only the test has stopped: its process, which would close it, goes on."""
    if "servers" in request.fixturenames:  # they close their files themselves, after several tests
        yield
        return
    left: set[int] = set()

    def create(self: Disk, path: Path, create: Callable[[Disk, Path], int] = Disk.create) -> int:
        left.add(descriptor := create(self, path))
        return descriptor

    def reopen(self: Disk, path: Path, reopen: Callable[[Disk, Path], int] = Disk.reopen) -> int:
        left.add(descriptor := reopen(self, path))
        return descriptor

    def close(self: Disk, descriptor: int, close: Callable[[Disk, int], None] = Disk.close) -> None:
        left.discard(descriptor)
        close(self, descriptor)

    for method in (create, reopen, close):
        monkeypatch.setattr(Disk, method.__name__, method)
    yield
    for descriptor in left:
        os.close(descriptor)
