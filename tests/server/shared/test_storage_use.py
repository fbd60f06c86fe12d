"""The limit for the bytes of all sessions in a shared storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradwire_protocol.errors import LimitExceeded
from gradwire_server.durable.shared import storage_use
from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from gradwire_server.durable.shared.object_storage import ObjectStorage
from gradwire_server.durable.shared.storage import Storage
from gradwire_server.durable.shared.storage_use import StorageUse
from gradwire_server.durable.store import LOOK_EVERY_S
from tests.server.shared.owners import Server
from tests.server.story import Story


@pytest.fixture(params=["directory", "objects"])
def either(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("storage" if request.param == "directory" else "bucket")


def test_all_servers_count_together(either: Storage) -> None:
    either.put("sessions/s_1/epochs/1/x", bytes(600))
    first, second = StorageUse(either, 1000), StorageUse(either, 1000)
    first.check(400)
    first.count(300)
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_DATA_BYTES") as refused:
        first.check(200)
    assert refused.value.details == {"setting": "GRADWIRE_MAX_DATA_BYTES", "limit": 1000, "value": 1100}
    with pytest.raises(LimitExceeded):
        second.check(401)
    StorageUse(either, 0).check(1 << 50)


def test_what_was_deleted_makes_room(storage: DirectoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.put("sessions/s_1/epochs/1/x", bytes(900))
    use = StorageUse(storage, 1000)
    with pytest.raises(LimitExceeded):
        use.check(200)
    storage.delete("sessions/s_1/epochs/1/x")
    with pytest.raises(LimitExceeded):  # as of the last measurement
        use.check(200)
    monkeypatch.setattr(storage_use, "REFUSED_EVERY_S", -1.0)
    use.check(200)


def test_own_writes_count_until_somebody_measures(storage: DirectoryStorage) -> None:
    use = StorageUse(storage, 100_000)
    use.check(0)
    use.count(300)
    use._at -= LOOK_EVERY_S  # it looks at the same measurement again
    use.check(0)
    with pytest.raises(LimitExceeded):
        use.check(99_701)


def test_a_storage_that_fails_refuses_nothing(storage: DirectoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(prefix: str) -> int:
        raise OSError(5, "unreachable")

    monkeypatch.setattr(storage, "used_bytes", fail)
    StorageUse(storage, 10).check(5)


def test_names_of_one_snapshot_count_once(storage: DirectoryStorage) -> None:
    storage.put("sessions/s_1/a", bytes(100))
    storage.path("sessions/s_1/b").hardlink_to(storage.path("sessions/s_1/a"))
    assert storage.used_bytes("sessions/") == 100


def test_a_session_and_its_writes_are_measured(server: Callable[..., Server], story: Story) -> None:
    owner = server()
    owner.store.use.most = 1 << 30
    runner = owner.create()
    owner.store.check_room()
    story.play(runner)
    assert runner._disk_use is owner.store.use
    assert runner._disk_use._added > 0
    owner.store.use.most = 100
    with pytest.raises(LimitExceeded):
        owner.store.check_room()


def test_an_object_store_says_how_large_its_objects_are(bucket: ObjectStorage) -> None:
    bucket.put("sessions/s_1/a", bytes(100))
    bucket.put("sessions/s_2/b", bytes(23))
    bucket.put("owners/o", bytes(7))
    assert bucket.used_bytes("sessions/") == 123
