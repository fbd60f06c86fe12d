"""Requests to delete that take effect late, or twice: they meet only keys that nobody writes again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradwire_server.durable.shared.mirrored_disk import MERGED_AT_ONCE
from gradwire_server.durable.shared.object_storage import ObjectStorage
from gradwire_server.durable.shared.tombstones import KEPT_S
from tests.server.shared.owners import Server
from tests.server.story import Story, fingerprint


class Watched(ObjectStorage):
    """Notes all deleted keys, and refuses to write one again. ``unanswered``: puts of keys with this get no answer."""

    def __init__(self, storage: ObjectStorage) -> None:
        super().__init__(storage._store, storage.url)
        self.deleted: set[str] = set()
        self.unanswered = ""

    def _writes(self, key: str) -> None:
        assert key not in self.deleted, f"a late DELETE of {key} would remove what is written now"

    def create(self, key: str, data: bytes) -> bool:
        self._writes(key)
        return super().create(key, data)

    def put(self, key: str, data: bytes | memoryview | Path) -> None:
        self._writes(key)
        super().put(key, data)
        if self.unanswered and self.unanswered in key:
            self.unanswered = ""
            raise OSError(5, "no answer")

    def copy(self, old: str, new: str) -> None:
        self._writes(new)
        super().copy(old, new)

    def delete(self, *keys: str) -> None:
        self.deleted.update(keys)
        super().delete(*keys)

    def repeat(self) -> None:
        """All requests to delete take effect once more."""
        super().delete(*self.deleted)


@pytest.fixture
def storage(bucket: ObjectStorage) -> Watched:
    return Watched(bucket)


@pytest.fixture
def server(storage: Watched, tmp_path: Path) -> Callable[[], Server]:
    return lambda: Server(storage, tmp_path)


@pytest.mark.parametrize("unanswered", ["/snapshot-", "/journal-00000000000000000005", "/manifest"])
def test_a_late_removal_of_a_snapshot_that_was_given_up_meets_no_other(
    storage: Watched, server: Callable[[], Server], story: Story, states: list[str], unanswered: str
) -> None:
    first, second, third = server(), server(), server()
    runner = first.create()
    story.play(runner, 0, 5)
    storage.unanswered = unanswered
    assert not runner.compact(force=True)
    assert not runner.compact(force=True), "after the same record, its files would have the same names"
    assert "had no answer" in runner.describe()["journal"]["postponed"]
    story.play(runner, 5, 7)
    assert runner.compact(force=True)
    story.play(runner, 7, 9)
    storage.repeat()
    second.sees_the_end_of(first)
    following = second.take_over()
    assert fingerprint(following.session) == states[9]
    story.play(following, 9)
    storage.repeat()
    third.sees_the_end_of(second)
    assert fingerprint(third.take_over().session) == states[-1]


def test_no_key_is_written_again_after_its_removal(
    storage: Watched, server: Callable[[], Server], story: Story, states: list[str]
) -> None:
    """The life of a session: commits that are merged, snapshots, a hand-over, a takeover, a deletion, sweeps."""
    first, second, third = server(), server(), server()
    runner = first.create()
    story.play(runner)
    assert fingerprint(runner.session) == states[-1]
    for _ in range(MERGED_AT_ONCE):
        runner.join(0)
        runner.commit()
    first.home().tidy()
    assert storage.deleted
    reached = fingerprint(runner.session)
    runner.close(keep=True)
    runner = second.take_over()
    assert runner.compact(force=True)
    storage.repeat()
    third.sees_the_end_of(second)
    runner = third.take_over()
    storage.repeat()
    assert fingerprint(runner.session) == reached
    runner.join(0)
    runner.commit()
    storage.repeat()
    reached = fingerprint(runner.session)
    runner.close(keep=True)
    runner = third.take_over()
    assert fingerprint(runner.session) == reached
    runner.close(keep=False)
    storage.repeat()
    assert storage.keys("sessions/") == []
    assert storage.children("deleted/") == ["s_story"]
    now = time.time()
    third.store.sweep_now(now)
    third.store.sweep_now(now + KEPT_S + 1)
    assert {key.split("/")[0] for key in storage.deleted} == {"sessions", "owners", "deleted"}
