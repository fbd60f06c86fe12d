"""Sessions in an object store: one commit is one upload, and takeovers assemble journals from their segments.

The store is moto's, an emulation of S3.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradwire_protocol.errors import JournalDamaged, Unavailable
from gradwire_server.durable.shared.mirrored_disk import MERGED_AT_ONCE, MirroredDisk, Segment, covering
from gradwire_server.durable.shared.object_storage import ObjectStorage
from gradwire_server.durable.shared.ownership import OwnershipLost
from gradwire_server.durable.shared.tombstones import Tombstone
from gradwire_server.hosting.runner import Runner
from tests.server.shared.owners import MemoryStorage, Server
from tests.server.story import Story, fingerprint
from tests.server.test_compaction import SHORT, Crash

EPOCHS = "sessions/s_story/epochs/"


@pytest.fixture
def server(bucket: ObjectStorage, tmp_path: Path) -> Callable[[], Server]:
    """Makes one more owner on the bucket."""
    return lambda: Server(bucket, tmp_path)


Make = Callable[[], Server]


def uploads(runner: Runner) -> int:
    assert isinstance(runner.disk, MirroredDisk)
    return runner.disk.uploads


def test_a_commit_is_one_upload(server: Make, story: Story) -> None:
    runner = server().create()
    before = uploads(runner)
    story.play(runner)
    assert uploads(runner) == before + len(story.events)


def test_a_session_goes_on_elsewhere(server: Make, story: Story, states: list[str]) -> None:
    former = server()
    runner = former.create(journal_bytes=SHORT)
    for number in range(0, len(story.events), 4):
        story.play(runner, number, min(number + 4, len(story.events)))
        if number == 4:
            assert runner.compact(force=True)
        following = server()
        following.sees_the_end_of(former)
        zombie, runner = runner, following.take_over(journal_bytes=SHORT)
        assert fingerprint(runner.session) == states[min(number + 4, len(story.events))]
        former = following
        zombie.close(keep=True)
        # The scratch folder of the former owner is gone, that of the new one is in use.
        assert zombie.folder is not None
        assert not zombie.folder.exists()
        assert runner.folder is not None
        assert runner.folder.exists()
    assert fingerprint(runner.session) == states[-1]


def test_only_the_newest_epoch_stays(server: Make, bucket: ObjectStorage, story: Story, states: list[str]) -> None:
    first, second = server(), server()
    runner = first.create()
    story.play(runner)
    runner.close(keep=True)
    runner = second.take_over()
    assert bucket.children(EPOCHS) == ["0000000002"]
    assert bucket.children("sessions/s_story/published/") == ["0000000002"]
    assert fingerprint(runner.session) == states[-1]
    runner.close(keep=False)
    assert bucket.keys("sessions/") == []
    assert isinstance(first.store.find("s_story"), Tombstone)


def test_nothing_of_a_former_owner_counts(server: Make, story: Story, states: list[str]) -> None:
    zombie, successor, third = server(), server(), server()
    runner = zombie.create()
    story.play(runner, 0, 6)
    successor.sees_the_end_of(zombie)
    following = successor.take_over()
    story.events[6].act(runner)
    with pytest.raises(OwnershipLost):
        runner.commit()
    runner._journal.commit()  # type: ignore[union-attr]  # it uploads nevertheless
    story.play(following, 6, 9)
    third.sees_the_end_of(successor)
    assert fingerprint(third.take_over().session) == states[9]


def test_a_journal_has_few_objects(tmp_path: Path) -> None:
    """Small segments are merged to larger ones, while the journal goes on."""
    storage = MemoryStorage()
    disk = MirroredDisk(storage)
    disk.mirror("p/", {})
    path = tmp_path / "journal-0.log"
    descriptor = disk.create(path)
    chance = random.Random(3)
    content, most, written = b"", 0, 0
    for _ in range(3000):
        piece = chance.randbytes(chance.randrange(1, 40))
        disk.write(descriptor, [piece], len(content))
        content += piece
        disk.merge(tmp_path, lambda: None)
        most = max(most, len(storage.blobs))
    written = disk.uploads
    assert most <= 3 * MERGED_AT_ONCE
    assert written < 3000 * 1.1
    assert assembled(storage) == content


def assembled(storage: MemoryStorage) -> bytes:
    prefix = "p/journal-0.log/"
    names = [key.removeprefix(prefix) for key in storage.blobs]
    return b"".join(storage.blobs[prefix + each.name] for each in covering(names))


@pytest.mark.parametrize("last", range(4))
def test_a_merge_may_be_interrupted(tmp_path: Path, last: int) -> None:
    storage = MemoryStorage()
    disk = MirroredDisk(storage)
    disk.mirror("p/", {})
    descriptor = disk.create(tmp_path / "journal-0.log")
    content = bytes(range(100)) * 4
    for at in range(0, len(content), 10):
        disk.write(descriptor, [content[at : at + 10]], at)
    left = last

    def interrupt(name: str, key: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError

    storage.before = interrupt
    with pytest.raises(OSError):
        disk.merge(tmp_path, lambda: None)
    assert assembled(storage) == content


def test_segments_behind_a_gap_do_not_count() -> None:
    names = [Segment(0, 64).name, Segment(64, 80).name, Segment(64, 100).name, Segment(100, 110).name]
    assert [each.end for each in covering(names)] == [64, 100, 110]
    assert [each.end for each in covering([*names[:1], names[3]])] == [64]
    assert covering(names[1:]) == []
    assert covering(["manifest", "x-y"]) == []


def test_a_commit_that_fails_is_uploaded_again(server: Make, story: Story, states: list[str], monkeypatch: Any) -> None:
    """The attempt may have left an object that is shorter than that of the next one."""
    first, second = server(), server()
    runner = first.create()
    story.play(runner, 0, 5)
    put = runner.disk._storage.put  # type: ignore[attr-defined]

    def lossy(key: str, data: Any) -> None:
        put(key, data)
        raise OSError(5, "no answer")

    story.events[5].act(runner)
    monkeypatch.setattr(runner.disk._storage, "put", lossy)  # type: ignore[attr-defined]
    with pytest.raises(Unavailable, match="no answer"):
        runner.commit()
    monkeypatch.undo()
    runner.commit()
    story.play(runner, 6)
    second.sees_the_end_of(first)
    assert fingerprint(second.take_over().session) == states[-1]


class Unanswered:
    """A put of a running session is not answered the first time, and takes effect when the test says so."""

    def __init__(self, runner: Runner, name: str, monkeypatch: Any) -> None:
        storage = runner.disk._storage  # type: ignore[attr-defined]
        self._put = storage.put
        self._name = name
        self._arguments: tuple[str, bytes] | None = None
        monkeypatch.setattr(storage, "put", self._lossy)

    def _lossy(self, key: str, data: Any) -> None:
        if self._arguments is None and os.path.basename(key).startswith(self._name):
            self._arguments = key, data.read_bytes() if isinstance(data, Path) else bytes(data)
            raise OSError(5, "no answer")
        self._put(key, data)

    def lands(self) -> None:
        """The put takes effect."""
        assert self._arguments is not None
        self._put(*self._arguments)


@pytest.mark.parametrize("rotations", [1, 2])
def test_a_late_put_of_an_older_manifest_does_no_harm(
    server: Make, story: Story, states: list[str], monkeypatch: Any, rotations: int
) -> None:
    """It names a journal and a snapshot that were replaced and removed since."""
    first, second, third = server(), server(), server()
    runner = first.create()
    story.play(runner, 0, 5)
    late = Unanswered(runner, "manifest", monkeypatch)
    assert not runner.compact(force=True)
    for number in range(rotations):
        story.play(runner, 5 + number, 6 + number)
        assert runner.compact(force=True)
    story.play(runner, 5 + rotations, 9)
    late.lands()
    second.sees_the_end_of(first)
    following = second.take_over()
    assert fingerprint(following.session) == states[9]
    story.play(following, 9)
    third.sees_the_end_of(second)
    assert fingerprint(third.take_over().session) == states[-1]


def test_a_late_put_of_a_snapshot_that_was_given_up_loses_no_records(
    server: Make, story: Story, states: list[str], monkeypatch: Any
) -> None:
    """It has no journal of its own: the journal before it went on."""
    first, second, third = server(), server(), server()
    runner = first.create()
    story.play(runner, 0, 5)
    late = Unanswered(runner, "snapshot-", monkeypatch)
    assert not runner.compact(force=True)
    story.play(runner, 5, 9)
    late.lands()
    second.sees_the_end_of(first)
    following = second.take_over()
    assert fingerprint(following.session) == states[9]
    story.play(following, 9)
    third.sees_the_end_of(second)
    assert fingerprint(third.take_over().session) == states[-1]


def test_a_late_put_of_a_journal_that_was_given_up_does_no_harm(
    server: Make, story: Story, states: list[str], monkeypatch: Any
) -> None:
    """Another journal after the same record would have the same name and another header."""
    first, second = server(), server()
    runner = first.create()
    story.play(runner, 0, 5)
    late = Unanswered(runner, "0" * 20 + "-", monkeypatch)
    assert not runner.compact(force=True)
    assert not runner.compact(force=True)
    assert "had no answer" in runner.describe()["journal"]["postponed"]
    story.play(runner, 5, 8)
    assert runner.compact(force=True)
    story.play(runner, 8, 9)
    late.lands()
    second.sees_the_end_of(first)
    assert fingerprint(second.take_over().session) == states[9]


def test_a_manifest_may_name_a_journal_that_was_given_up(
    server: Make, story: Story, states: list[str], monkeypatch: Any
) -> None:
    """Its upload had no answer, but took effect. The process ends between the next snapshot and its journal."""
    first, second = server(), server()
    runner = first.create()
    story.play(runner, 0, 5)
    late = Unanswered(runner, "manifest", monkeypatch)
    assert not runner.compact(force=True)
    late.lands()
    story.play(runner, 5, 7)
    put = runner.disk._storage.put  # type: ignore[attr-defined]

    def ends(key: str, data: Any) -> None:
        if "/journal-00000000000000000007" in key:
            raise Crash
        put(key, data)

    monkeypatch.setattr(runner.disk._storage, "put", ends)  # type: ignore[attr-defined]
    with pytest.raises(Crash):
        runner.compact(force=True)
    monkeypatch.undo()
    second.sees_the_end_of(first)
    following = second.take_over()
    assert fingerprint(following.session) == states[7]
    story.play(following, 7)
    assert fingerprint(following.session) == states[-1]


def test_snapshots_are_copied_inside_the_store(server: Make, story: Story, states: list[str], monkeypatch: Any) -> None:
    first, second = server(), server()
    runner = first.create()
    story.play(runner)
    assert runner.compact(force=True)
    runner.close(keep=True)
    put, uploaded = ObjectStorage.put, list[str]()

    def noting(self: ObjectStorage, key: str, data: Any) -> None:
        uploaded.append(os.path.basename(key))
        put(self, key, data)

    monkeypatch.setattr(ObjectStorage, "put", noting)
    assert fingerprint(second.take_over().session) == states[-1]
    assert not any(name.startswith("snapshot-") for name in uploaded)
    assert "manifest" in uploaded


def test_a_lost_segment_is_damage(server: Make, bucket: ObjectStorage, story: Story) -> None:
    first, second = server(), server()
    runner = first.create()
    story.play(runner)
    first.lease.end()
    segments = [key for key in bucket.keys(EPOCHS) if ".log/" in key]
    bucket.put(segments[3], b"short")
    with pytest.raises(JournalDamaged, match="has 5 bytes"):
        second.take_over()


def test_a_dormant_session_is_deleted(server: Make, bucket: ObjectStorage, story: Story) -> None:
    first, second = server(), server()
    runner = first.create()
    story.play(runner, 0, 4)
    runner.close(keep=True)
    second.store.remove("s_story")
    assert bucket.keys("sessions/") == []
