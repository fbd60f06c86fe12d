"""One owner after another on a shared directory: nothing acknowledged is lost, nothing of a former owner counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gradwire_protocol.errors import JournalDamaged, NotFound, Unavailable
from gradwire_protocol.frames import Frame
from gradwire_server.durable import manifest
from gradwire_server.durable.shared import home as homes
from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from gradwire_server.durable.shared.ownership import OwnershipLost
from gradwire_server.hosting.runner import Runner
from tests.server.shared.owners import Server
from tests.server.shared.stopping import CrashingStorage
from tests.server.story import Story, fingerprint, new_runner
from tests.server.test_compaction import MOST_OPERATIONS, SHORT, Crash, CrashingDisk

Make = Callable[..., Server]


def last_frame(story: Story, before: int) -> tuple[int, Frame]:
    """The last frame of the story before an event, and its number."""
    return next((n, e.frame) for n, e in reversed(list(enumerate(story.events[:before]))) if e.frame is not None)


def test_a_session_goes_on_elsewhere_after_any_record(server: Make, story: Story, states: list[str]) -> None:
    """Its owner is gone without a word each time."""
    former = server()
    former.create()
    for number in range(len(story.events)):
        following = server()
        following.sees_the_end_of(former)
        runner = following.take_over()
        assert fingerprint(runner.session) == states[number]
        story.play(runner, number, number + 1)
        former = following


def test_a_released_session_is_free_at_once(
    server: Make, storage: DirectoryStorage, story: Story, states: list[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("gradwire_server.hosting.runner.CHEAP_RECORDS", 4)
    first, second = server(), server()
    runner = first.create()
    story.play(runner)
    assert first.store.owner_of("s_story") == first.store.owner
    runner.close(keep=True)
    assert first.store.owner_of("s_story") is None
    runner = second.take_over()
    assert fingerprint(runner.session) == states[-1]
    # A hand-over takes a snapshot, and what it was taken over from is removed.
    assert {key.split("/")[3] for key in storage.keys("sessions/s_story/epochs/")} == {"0000000002"}
    (snapshot,) = [key for key in storage.keys("sessions/s_story/epochs/") if "snapshot-" in key]
    assert f"{len(story.events):020d}" in snapshot


def test_while_its_owner_lives_nobody_takes_a_session(server: Make, story: Story, monkeypatch: Any) -> None:
    first, second = server(), server()
    monkeypatch.setattr(homes, "HAND_OVER_S", 0.2)
    monkeypatch.setattr(second.observer, "watch_s", lambda owner: 0.2)
    runner = first.create()
    with pytest.raises(Unavailable, match="runs on another server") as refused:
        second.take_over()
    assert refused.value.details == {"reason": "elsewhere", "owner": first.store.owner}
    story.play(runner)


def test_nothing_is_acknowledged_after_the_lease(server: Make, story: Story, states: list[str]) -> None:
    zombie, successor = server(), server()
    runner = zombie.create()
    story.play(runner, 0, 6)
    successor.sees_the_end_of(zombie)
    story.events[6].act(runner)
    with pytest.raises(OwnershipLost):
        runner.commit()
    # The kept reply of an applied frame is no acknowledgement either: the commit decides.
    assert runner.dirty
    with pytest.raises(OwnershipLost):
        runner.commit()
    following = successor.take_over()
    assert fingerprint(following.session) == states[6]
    runner.close(keep=True)
    story.play(following, 6)
    assert fingerprint(following.session) == states[-1]


def test_what_a_former_owner_writes_later_is_not_part_of_the_session(
    server: Make, storage: DirectoryStorage, story: Story, states: list[str]
) -> None:
    zombie, successor, third = server(), server(), server()
    runner = zombie.create(journal_bytes=SHORT)
    story.play(runner, 0, 6)
    successor.sees_the_end_of(zombie)
    following = successor.take_over()
    for event in story.events[6:8]:
        event.act(runner)
    with pytest.raises(OwnershipLost):
        runner.commit()
    assert not runner.compact(force=True)
    runner.close(keep=False)  # a deletion that was asked of the zombie
    with pytest.raises(Unavailable):
        zombie.store.remove("s_story")
    number, frame = last_frame(story, 6)
    again, _ = following.apply(msgspec.structs.replace(frame), list(story.events[number].buffers))
    assert again.refused is None
    assert fingerprint(following.session) == states[6], "a frame that was answered is not applied again"
    story.play(following, 6)
    third.sees_the_end_of(successor)
    assert fingerprint(third.take_over().session) == states[-1]
    assert storage.get("deleted/s_story") is None


def test_an_unanswered_frame_is_applied_once(server: Make, story: Story, states: list[str]) -> None:
    """The former owner wrote it or not; the client sends it again."""
    for written in (False, True):
        zombie, successor = server(), server()
        runner = zombie.create()
        number, frame = last_frame(story, len(story.events))
        story.play(runner, 0, number)
        if written:
            story.events[number].act(runner)
            runner._journal.commit()  # type: ignore[union-attr]  # the lease ends between this and the check
        successor.sees_the_end_of(zombie)
        following = successor.take_over()
        reply, _ = following.apply(msgspec.structs.replace(frame), list(story.events[number].buffers))
        assert reply.refused is None
        following.commit()
        assert fingerprint(following.session) == states[number + 1]
        following.close()
        successor.store._homes.clear()
        for key in following._home._storage.keys("deleted/"):  # type: ignore[union-attr]
            following._home._storage.delete(key)  # type: ignore[union-attr]


class TakenOver(CrashingDisk):
    """At its n-th operation, this owner is stopped for so long that another one takes the session over."""

    def __init__(self, last: int, meanwhile: Callable[[], None]) -> None:
        super().__init__(last)
        self.meanwhile = meanwhile

    def _count(self) -> None:
        self.left -= 1
        if self.left == -1:
            self.meanwhile()


def stopped_before(last: int, root: Path, story: Story, states: list[str], durability: str) -> bool | None:
    """Tell the story on an owner that is stopped before its n-th operation, until it knows that it has lost.

    Returns whether another owner could take over; ``None`` if the story was over before.
    """
    storage = DirectoryStorage(root / str(last))
    successor = Server(storage, root)
    taken: list[tuple[Runner, int]] = []
    acknowledged = 0

    def meanwhile() -> None:
        successor.sees_the_end_of(zombie)
        try:
            runner = successor.take_over(journal_bytes=SHORT)
        except NotFound:  # it was never published
            return
        records = runner._journal.last  # type: ignore[union-attr]
        assert records in (acknowledged, acknowledged + 1)
        assert fingerprint(runner.session) == states[records]
        taken.append((runner, records))

    zombie = Server(storage, root, disk=TakenOver(last, meanwhile))
    try:
        runner = zombie.create(durability, SHORT)
        for event in story.events:
            event.act(runner)
            runner.commit()
            acknowledged += 1
            runner.compact(force=acknowledged % 5 == 0)
    except Unavailable:
        assert zombie.store.home("s_story").lost
    else:
        assert not taken
        return None
    for runner, records in taken:
        story.play(runner, records)
        assert fingerprint(runner.session) == states[-1]
        third = Server(storage, root)
        third.sees_the_end_of(successor)
        assert fingerprint(third.take_over().session) == states[-1]
    return bool(taken)


@pytest.mark.parametrize("durability", ["applied", "durable"])
def test_an_owner_may_be_stopped_before_any_operation(
    tmp_path: Path, story: Story, states: list[str], durability: str
) -> None:
    """The former owner goes on when the other one has taken over. Only what it acknowledged before must be there."""
    outcomes = []
    for last in range(int(durability == "applied"), MOST_OPERATIONS, 2):
        outcomes.append(stopped_before(last, tmp_path, story, states, durability))
        if outcomes[-1] is None:
            break
    assert sum(map(bool, outcomes)) > 15


@pytest.mark.parametrize("kind", ["storage", "disk"])
def test_a_takeover_that_is_interrupted_anywhere_is_done_again(
    tmp_path: Path, story: Story, states: list[str], kind: str
) -> None:
    storage = DirectoryStorage(tmp_path / "shared")
    former = Server(storage, tmp_path)
    runner = former.create(journal_bytes=SHORT)
    story.play(runner, 0, 8)
    assert runner.compact(force=True)
    story.play(runner, 8, 10)
    interrupted = 0
    for last in range(2, MOST_OPERATIONS):
        crashing = CrashingStorage(storage.root, last if kind == "storage" else MOST_OPERATIONS)
        disk = CrashingDisk(last if kind == "disk" else MOST_OPERATIONS)
        following = Server(crashing, tmp_path, disk=disk)
        with pytest.MonkeyPatch.context() as patch:
            # What removes remains on the way out does not run when the process is gone.
            patch.setattr(homes.Home, "abandon", lambda self: None)
            crashing.left += 10**6  # it watches in peace
            following.sees_the_end_of(former)
            crashing.left -= 10**6
            try:
                runner = following.take_over(journal_bytes=SHORT)
            except Crash:
                interrupted += 1
                former = following
                continue
        assert fingerprint(runner.session) == states[10]
        disk.left = MOST_OPERATIONS
        story.play(runner, 10)
        assert fingerprint(runner.session) == states[-1]
        break
    assert interrupted > 2
    assert {key.split("/")[3] for key in storage.keys("sessions/s_story/epochs/")} == {f"{runner._home.epoch:010d}"}  # type: ignore[union-attr]


def test_files_that_a_former_owner_replaces_meanwhile_are_copied_again(
    server: Make, story: Story, states: list[str], monkeypatch: Any
) -> None:
    zombie, successor = server(), server()
    runner = zombie.create(journal_bytes=SHORT)
    story.play(runner, 0, 8)
    assert runner.compact(force=True)
    story.play(runner, 8, 10)
    successor.sees_the_end_of(zombie)
    link = os.link

    def late(old: Any, new: Any, **more: Any) -> None:
        """The zombie's last check was in time; now it removes what its new snapshot replaces."""
        if "snapshot-" in str(old):
            monkeypatch.undo()
            monkeypatch.setattr(runner._home, "check", lambda: None)
            assert runner.compact(force=True)
        link(old, new, **more)

    monkeypatch.setattr(os, "link", late)
    assert fingerprint(successor.take_over().session) == states[10]


def test_another_machine_takes_over(server: Make, story: Story, states: list[str], monkeypatch: Any) -> None:
    """Boot ids differ. Records that were written but not flushed are there, or were lost with the machine."""
    first, second, third = server(), server(), server()
    runner = first.create("applied")
    story.play(runner)
    monkeypatch.setattr(manifest, "boot_id", lambda: b"another machine.")
    second.sees_the_end_of(first)
    following = second.take_over()
    assert fingerprint(following.session) == states[-1]
    assert following._manifest is not None
    # The takeover has flushed everything, so the copy is as good as its owner may claim.
    assert following._manifest.mark.synced == len(story.events)
    monkeypatch.setattr(manifest, "boot_id", lambda: b"the third machin")
    third.sees_the_end_of(second)
    assert fingerprint(third.take_over().session) == states[-1]


def test_a_tail_that_a_machine_lost_is_not_missed(
    server: Make, story: Story, states: list[str], monkeypatch: Any
) -> None:
    """With durability applied, a machine's end may lose the last records, and its successor goes on without them."""
    first, second, third = server(), server(), server()
    runner = first.create("applied")
    story.play(runner, 0, 5)
    assert runner._journal is not None
    path, size = runner._journal.path, runner._journal.nbytes
    story.play(runner, 5, 8)
    os.truncate(path, size)
    monkeypatch.setattr(manifest, "boot_id", lambda: b"another machine.")
    second.sees_the_end_of(first)
    assert fingerprint(second.take_over().session) == states[5]
    third.sees_the_end_of(second)  # on the same machine, before any commit
    assert fingerprint(third.take_over().session) == states[5]


def test_on_the_same_machine_a_missing_tail_is_damage(server: Make, story: Story) -> None:
    first, second = server(), server()
    runner = first.create("applied")
    story.play(runner, 0, 5)
    assert runner._journal is not None
    path, size = runner._journal.path, runner._journal.nbytes
    story.play(runner, 5, 8)
    os.truncate(path, size)
    second.sees_the_end_of(first)
    with pytest.raises(JournalDamaged, match="record 6 is missing"):
        second.take_over()


def test_after_a_power_failure_a_second_crash_changes_nothing(
    tmp_path: Path, story: Story, states: list[str], monkeypatch: Any
) -> None:
    """A data directory, too: the manifest of the new boot lists only what the recovery found."""
    folder = tmp_path / "s_story"
    runner = new_runner(folder)
    story.play(runner, 0, 5)
    assert runner._journal is not None
    size = runner._journal.nbytes
    story.play(runner, 5, 8)
    os.truncate(runner._journal.path, size)
    monkeypatch.setattr(manifest, "boot_id", lambda: b"after the reboot")
    for crashed in (runner, None):
        if crashed is not None and crashed._lock is not None:
            crashed._lock.release()
        runner = Runner.recover(folder)
        assert fingerprint(runner.session) == states[5]
        assert runner._lock is not None
        runner._lock.release()


def test_a_missing_epoch_is_damage_and_changes_nothing(server: Make, storage: DirectoryStorage, story: Story) -> None:
    first, second = server(), server()
    runner = first.create()
    story.play(runner, 0, 4)
    first.lease.end()
    for key in storage.keys("sessions/s_story/epochs/"):
        storage.delete(key)
    for _ in range(2):
        with pytest.raises(JournalDamaged, match="is missing"):
            second.take_over()
    assert storage.children("sessions/s_story/published/") == ["0000000001"]


def test_a_release_that_fails_keeps_nobody_out(
    server: Make, storage: DirectoryStorage, story: Story, states: list[str], monkeypatch: Any
) -> None:
    owner = server()
    runner = owner.create()
    story.play(runner)
    with monkeypatch.context() as patch:

        def fail(*_: Any) -> None:
            raise OSError(5, "the storage is unreachable")

        patch.setattr("gradwire_server.durable.shared.claims.release", fail)
        with pytest.raises(OSError, match="unreachable"):
            runner.close(keep=True)
    assert fingerprint(owner.take_over().session) == states[-1]
