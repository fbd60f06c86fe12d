"""The data directory: one server, complete sessions, and their size."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from gradwire_protocol.errors import LimitExceeded, Unavailable
from gradwire_server.durable.disk import Disk
from gradwire_server.durable.store import DamagedSession, Store, used_bytes
from gradwire_server.hosting.runner import Runner
from tests.server.story import Story, fingerprint, new_runner, spec
from tests.server.test_compaction import MOST_OPERATIONS, Crash, CrashingDisk


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_one_server_uses_a_directory(store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr("gradwire_server.durable.store.LOCK_PATIENCE_S", 0.05)
    with pytest.raises(Unavailable, match="in use"):
        Store(store.root)
    store.close()
    Store(store.root).close()


def test_it_tells_its_sessions_and_which_cannot_be_read(store: Store) -> None:
    for name in ("s_a", "s_b"):
        Runner(spec(name=name, tenant="somebody"), store.folder(name)).close(keep=True)
    path = store.folder("s_b") / "session.json"
    path.write_bytes(path.read_bytes()[:-20])
    found = dict(store.specs())
    assert found["s_a"] == spec(name="s_a", tenant="somebody")
    damaged = found["s_b"]
    assert isinstance(damaged, DamagedSession)
    assert damaged.error.details["file"] == "s_b/session.json"
    assert damaged.tenant == "somebody"


def test_what_never_became_a_session_is_swept(store: Store) -> None:
    Runner(spec(name="s_a"), store.folder("s_a")).close(keep=True)
    store.folder("s_b").mkdir()
    (store.folder("s_b") / "journal-0.log.part").write_bytes(b"x")
    store.sweep()
    assert [path.name for path in store.sessions.iterdir()] == ["s_a"]


def test_a_removal_that_is_interrupted_leaves_a_whole_session_or_none(store: Store) -> None:
    story = Story(steps=1)
    expected = story.states()[-1]
    for last in range(MOST_OPERATIONS):
        folder = store.folder("s_story")
        runner = new_runner(folder)
        story.play(runner)
        runner.disk = CrashingDisk(last)
        try:
            runner.close()
        except Crash:
            if dict(store.specs()):
                recovered = Runner.recover(folder)
                assert fingerprint(recovered.session) == expected
                recovered.close()
            store.sweep()
            assert not folder.exists()
        else:
            break
    assert last >= 4


def test_it_counts_what_is_on_disk_and_refuses_beyond(store: Store, tmp_path: Path) -> None:
    runner = new_runner(store.folder("s_story"))
    Story().play(runner)
    used = sum(path.stat().st_size for path in store.folder("s_story").iterdir())
    assert used_bytes(store.sessions) == used
    store.max_data_bytes = used + 1
    store.check_room(1)
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_DATA_BYTES"):
        store.check_room(2)


def test_a_session_for_which_the_disk_has_no_room_leaves_nothing_behind(store: Store) -> None:
    class Full(Disk):
        def write(self, *_: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(Unavailable, match="No space left"):
        Runner(spec(), store.folder("s_story"), disk=Full())
    assert not store.folder("s_story").exists()
